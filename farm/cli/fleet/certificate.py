"""The options for a certificate that the farm's own authority has not signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from farm.cli.output import option

if TYPE_CHECKING:
    from orchestrator.system.config import Settings

CertificateOption = Annotated[
    Path | None, option("--certificate FILE", "With --listen: the pages' certificate with its chain (PEM).")
]
KeyOption = Annotated[Path | None, option("--key FILE", "The key of that certificate (PEM).")]


def with_certificate(settings: Settings, certificate: Path | None, key: Path | None) -> Settings:
    """Return the settings with the files that options name."""
    given = {"certificate": certificate, "key": key}
    return settings.model_copy(update={name: path for name, path in given.items() if path is not None})
