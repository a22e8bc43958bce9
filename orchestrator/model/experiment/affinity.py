"""Parse the names and numbers of cores."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from orchestrator.model.axes import cores_conflict


def _cores(value: str) -> str:
    if why := cores_conflict(value):
        raise ValueError(why)
    return value


Affinity = Annotated[str, AfterValidator(_cores)]
