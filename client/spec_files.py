"""The files that an experiment names, so that they can travel with it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = "sha256:"
"""The word before the hash of a model that the farm has already."""
FILES = (
    ("workload", "onnx"),
    ("workload", "language_model"),
    ("workload", "prompt", "text"),
    ("workload", "prompt", "tokens"),
    ("workload", "input"),
    ("workload", "choices"),
    ("workload", "files"),
    ("workload", "model"),
    ("workload", "dataset", "inputs"),
    ("workload", "dataset", "labels"),
    ("workload", "training", "dataset", "inputs"),
    ("workload", "training", "dataset", "labels"),
    ("strategy", "file"),
    ("published", "study"),
    ("sides", "*", "onnx"),
    ("sides", "*", "agent"),
    ("sides", "*", "engine", "*"),
    ("engine", "models", "*"),
    ("engine", "models", "*", "*"),
)
"""Fields of an experiment that name a file or folder, or several; `*`: under any name."""


def with_files(spec: Mapping[str, Any], base: Path) -> tuple[dict[str, Any], dict[str, Path]]:
    """The same experiment with its files in its own folder, and these files by their names there.

    Results are called after a model's file, so it keeps its name; of two that are called alike one gets a number."""
    made = copy.deepcopy(dict(spec))
    files: dict[str, Path] = {}
    for holder, field in _named(made):
        path = base / str(holder[field])
        taken = {*files, "experiment.yaml", "", ".."}
        holder[field] = f"{len(files)}-{path.name}" if path.name in taken else path.name
        files[holder[field]] = path
    return made, files


def files_of(spec: Mapping[str, Any], base: Path) -> dict[str, Path]:
    """Return the files of an experiment by the names that it gives them; those of a folder by its name and their path
    below it. What is not there is left out: the farm says where it is named."""
    files: dict[str, Path] = {}
    for holder, field in _named(dict(spec)):
        name, path = str(holder[field]), base / str(holder[field])
        if path.is_file():
            files[name] = path
        for each in sorted(each for each in path.rglob("*") if each.is_file()):
            files[f"{name.rstrip('/')}/{each.relative_to(path).as_posix()}"] = each
    return files


def _named(spec: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    return (found for path in FILES for found in _below(spec, path))


def _below(holder: Any, path: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield where a file is named, and by which key or index of that."""
    for each in holder if isinstance(holder, list) else []:
        yield from _below(each, path)
    for name in [each for each in holder if path[0] in ("*", each)] if isinstance(holder, dict) else []:
        if path[1:]:
            yield from _below(holder[name], path[1:])
            continue
        several = isinstance(holder[name], list)
        places = [(holder[name], index) for index in range(len(holder[name]))] if several else [(holder, name)]
        for each, key in places:
            if isinstance(each[key], str) and not each[key].startswith(KEPT):
                yield each, key
