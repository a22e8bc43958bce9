"""The files that an experiment names, so that they can travel with it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.acts.submission.gather import KEPT

FILES = (
    ("workload", "onnx"),
    ("workload", "language_model"),
    ("workload", "input"),
    ("workload", "choices"),
    ("workload", "files"),
    ("workload", "dataset", "inputs"),
    ("workload", "dataset", "labels"),
    ("workload", "training", "dataset", "inputs"),
    ("workload", "training", "dataset", "labels"),
    ("strategy", "file"),
    ("published", "study"),
    ("sides", "*", "onnx"),
    ("sides", "*", "agent"),
)
"""Fields of an experiment that name a file or folder; `*`: under any name."""


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


def _named(spec: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for *path, field in FILES:
        holders: list[Any] = [spec]
        for step in path:
            inner = [each for each in holders if isinstance(each, dict)]
            holders = [value for each in inner for name, value in each.items() if step in ("*", name)]
        named = (each for each in holders if isinstance(each, dict) and isinstance(each.get(field), str))
        yield from ((each, field) for each in named if not each[field].startswith(KEPT))
