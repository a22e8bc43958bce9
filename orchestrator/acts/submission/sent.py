"""Experiments that come without their files, as over the network: none of this machine is read for them."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import PosixPath
from typing import Any, NoReturn

from orchestrator.model.errors import ModelFileError, SpecError
from orchestrator.model.experiment import Experiment

REMEDY = "name a network or `sha256:HASH` of a model that the farm has, or submit it on the machine of the farm"


class NoFolder(PosixPath):
    """The folder of such an experiment: whatever names a file in it is refused, however it is named."""

    def __truediv__(self, name: str | PathLike[str]) -> NoReturn:
        raise _refused(str(name))

    def joinpath(self, *names: str | PathLike[str]) -> NoReturn:
        raise _refused("/".join(map(str, names)))


def _refused(name: str) -> ModelFileError:
    return ModelFileError(f"{name:.200}: no file came with this experiment", remedy=REMEDY)


def check_sent(experiment: Experiment) -> None:
    """Raise SpecError for fields that the farm itself fills in: who sends them would name files of others."""
    filled = list(_filled(experiment.model_dump(exclude_defaults=True), ()))
    if filled:
        raise SpecError(f"{', '.join(filled[:3])}: the farm fills this in itself", remedy="leave it out")


def _filled(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            own = (*path, str(name))
            if (str(name).endswith("_sha256") or name == "builds") and inner:
                yield ".".join(own)
            else:
                yield from _filled(inner, own)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _filled(inner, (*path, str(place)))
