"""Several workloads of one experiment: a list of them in the file, the models of which are an axis of its matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .workload import Workload


def listed_apart(data: object) -> object:
    """Return an experiment file's data with the first of a list of workloads as the workload, the others beside it."""
    match data:
        case {"workloads": [_, *_], "workload": [*_]}:
            raise ValueError("give workloads once: as a list under `workload`")
        case {"workload": [first, *others], **rest}:
            return {**rest, "workload": first, "workloads": others}
    return data


def in_file(data: object, place: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return where in a file's data stands what a model has at this place."""
    if isinstance(data, dict) and isinstance(data.get("workload"), list):
        match place:
            case ("workload", *rest):
                return ("workload", 0, *rest)
            case ("workloads", int(number), *rest):
                return ("workload", number + 1, *rest)
    return place


def in_schema(schema: dict[str, Any]) -> None:
    """Let a JSON Schema of experiment files say so."""
    del schema["properties"]["workloads"]
    one = schema["properties"]["workload"]
    schema["properties"]["workload"] = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}


def why_not(workloads: Sequence[Workload], alone: Mapping[str, bool]) -> str:
    """Return why these cannot be one experiment's; empty: they can. `alone`: fields that go with one, and which are
    given."""
    for each in workloads if len(workloads) > 1 else ():
        if each.kind not in ("network", "onnx") or each.dataset or each.training or each.choices:
            return "several are models by `network` or `onnx`, without `dataset`, `training` and `choices`"
    labels = [each.label for each in workloads]
    if twice := next((name for name in labels if labels.count(name) > 1), ""):
        return f"two are called `{twice}`: name a file otherwise, so that results tell them apart"
    if len(workloads) > 1 and (field := next((name for name, is_given in alone.items() if is_given), "")):
        return f"leave out `{field}`, or give one workload alone"
    return ""


def own_key(engine: str, workload: str) -> str:
    """Return the key of an engine's files of one of several workloads."""
    return f"{engine} {workload}"


def flat(models: object) -> object:
    """Return the files of models by `ENGINE`, or by `ENGINE WORKLOAD` where they are told by workload."""
    if not isinstance(models, dict):
        return models
    found: dict[str, object] = {}
    for engine, files in models.items():
        found |= (
            {own_key(engine, name): own for name, own in files.items()} if isinstance(files, dict) else {engine: files}
        )
    return {name: (files,) if isinstance(files, str) else files for name, files in found.items()}


def why_no_models(models: Iterable[str], engines: set[str], workloads: Sequence[Workload]) -> str:
    """Return why files of models are nobody's; empty: each is that of an engine, and of one of several workloads."""
    labels = {each.label for each in workloads}
    for engine, _, label in (key.partition(" ") for key in sorted(models)):
        if engine not in engines:
            return f"`engine.models` has files of `{engine}`, which `matrix.engine` does not list"
        if label not in (labels if len(workloads) > 1 else {""}):
            known = ", ".join(sorted(labels))
            return (
                f"`engine.models.{engine}`: name the workload of each file: `{{WORKLOAD: FILE}}` (there are {known})"
                if len(workloads) > 1
                else f"`engine.models.{engine}`: there is one workload: give its file alone"
            )
    return ""
