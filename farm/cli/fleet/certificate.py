"""The options for a certificate that the farm's own authority has not signed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from orchestrator.system.config import Settings

CertificateOption = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="FILE", help="With --listen: the pages' certificate with its chain (PEM)."),
]
KeyOption = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="The key of that certificate (PEM).")]


def with_certificate(settings: Settings, certificate: Path | None, key: Path | None) -> Settings:
    """Return the settings with the files that options name."""
    given = {"certificate": certificate, "key": key}
    return settings.model_copy(update={name: path for name, path in given.items() if path is not None})
