"""Read a choices file, and check it against a network."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from orchestrator.model.choices import Choices
from orchestrator.model.errors import ModelFileError


def read_choices(path: Path, name: str) -> Choices:
    """`name`: what the user calls it. Raises ModelFileError, with the field."""
    try:
        return Choices.model_validate_json(path.read_bytes())
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ModelFileError(
            f"workload.choices: {name}: {where}: {first['msg']}", remedy="`farm best ... -o FILE` writes such a file"
        ) from e
