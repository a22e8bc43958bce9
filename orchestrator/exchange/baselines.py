"""Keep the rows of a side in a file, as a released baseline that later runs are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from orchestrator.analysis.comparison import SideRow
from orchestrator.model.base import Model
from orchestrator.model.errors import TableError


class Baseline(Model):
    """The blocks of one side, with what a comparison needs of them."""

    schema_version: Literal[1] = 1
    experiments: tuple[str, ...]
    """Ids of what was measured."""
    rows: tuple[SideRow, ...] = Field(min_length=1)


def as_bytes(experiments: Sequence[str], rows: Sequence[SideRow]) -> bytes:
    baseline = Baseline(experiments=tuple(experiments), rows=tuple(rows))
    return baseline.model_dump_json(exclude_defaults=True).encode() + b"\n"


def read(path: Path) -> Baseline:
    """Raises TableError where the file is no baseline that this version reads."""
    save = "a baseline is what `farm compare EXPERIMENT --save-baseline FILE` writes"
    try:
        return Baseline.model_validate_json(path.read_bytes())
    except OSError as e:
        raise TableError(f"{path}: cannot be read: {e.strerror}", remedy="check the path") from e
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise TableError(f"{path}: is no baseline: {where}: {first['msg']}".replace(": :", ":"), remedy=save) from e
