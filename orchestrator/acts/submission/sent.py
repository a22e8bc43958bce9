"""Experiments that come without their folder, as over the network: they read what their project sent, and nothing of
this machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any, NoReturn

from orchestrator.model.errors import FarmError, ModelFileError, SpecError
from orchestrator.model.experiment import Experiment

from .uploads import Uploads

REMEDY = (
    "name a network or `sha256:HASH` of a model that the farm has; or send the file (PUT /files/HASH), and say under "
    "`files` which hash this name has"
)


class SentFolder(PosixPath):
    """The folder of such an experiment: it has what came with it, by the names that the experiment gives. Whatever
    else is named is refused, however it is named."""

    places: Mapping[str, Path]

    def __truediv__(self, name: str | PathLike[str]) -> Path:  # type: ignore[override]
        try:
            return self.places[str(name)]
        except KeyError:
            raise ModelFileError(f"{name!s:.200}: no file came with this experiment", remedy=REMEDY) from None

    def joinpath(self, *names: str | PathLike[str]) -> NoReturn:
        raise ModelFileError(f"{'/'.join(map(str, names)):.200}: no file came with this experiment", remedy=REMEDY)


@contextmanager
def sent_folder(experiment: Experiment, files: Mapping[str, str], uploads: Uploads) -> Iterator[SentFolder]:
    """Lay out what came with an experiment. `files`: a file's name in the experiment, or that of a folder with the
    file's path below it -> its SHA-256. Raises SpecError, ModelFileError."""
    check_sent(experiment)
    kept = {name: uploads.path(sha256) for name, sha256 in files.items()}
    with tempfile.TemporaryDirectory(dir=uploads.state, prefix=".sent-") as scratch:
        folder = SentFolder(scratch)
        folder.places = _laid_out(Path(scratch), _strings(experiment.model_dump(mode="json")), kept)
        try:
            yield folder
        except FarmError as e:  # nobody has seen that folder
            for name, place in folder.places.items():
                e.args = (str(e.args[0]).replace(str(place), name), *e.args[1:])
            raise


def _laid_out(scratch: Path, named: set[str], kept: Mapping[str, Path]) -> dict[str, Path]:
    """Link each file below a folder of its own, so that no name of the experiment is a path of this machine."""
    places: dict[str, Path] = {}
    for number, name in enumerate(sorted(named)):
        if not name:
            continue
        place = scratch / str(number) / PurePosixPath(name).name.replace("..", "")
        below = {each.removeprefix(f"{name.rstrip('/')}/"): path for each, path in kept.items() if each != name}
        own = {rest: path for rest, path in below.items() if f"{name.rstrip('/')}/{rest}" in kept}
        for rest, path in {".": kept[name]}.items() if name in kept else own.items():
            if {"", ".."} & {*rest.split("/")}:
                raise ModelFileError(f"files: {name}/{rest}: a path below a folder has no `..`, and no empty part")
            (place / rest).parent.mkdir(parents=True, exist_ok=True)
            os.link(path, place / rest)
            places[name] = place
    return places


def _strings(value: Any) -> set[str]:
    """Return all texts of an experiment: those that name files are among them."""
    if isinstance(value, dict | list):
        return set[str]().union(*map(_strings, value.values() if isinstance(value, dict) else value))
    return {value} if isinstance(value, str) and len(value) < os.pathconf("/", "PC_PATH_MAX") else set()


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
