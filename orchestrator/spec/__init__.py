"""Experiment files: YAML -> `Experiment`, or every problem at once: file, line, column, field, what is allowed."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from orchestrator import select
from orchestrator.errors import SpecError
from orchestrator.model.experiment import Experiment
from orchestrator.model.quantity import parse_bytes, parse_celsius, parse_seconds

from . import yaml_tree
from .yaml_tree import Place, YamlTree

MAX_BYTES = 1 << 20

_UNIT_HINTS: dict[Callable[[object], float], tuple[str, str]] = {
    parse_seconds: ("{} s", "ns, us, ms, s, min, h"),
    parse_bytes: ("{} MiB", "B, kB, MB, GB, KiB, MiB, GiB"),
    parse_celsius: ("{} C", "C"),
}


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with an experiment file."""

    place: Place
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class SpecProblems(SpecError):
    """An experiment file is wrong; `problems` holds each, the message lists them all."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(problems)} problem" + "s" * (len(problems) != 1)
        lines = [
            f"{file}:{p.place.line}:{p.place.column}: {p.field + ': ' * bool(p.field)}{p.message}" for p in problems
        ]
        super().__init__("\n  ".join([f"{file}: {count}", *lines]))


def load(path: Path) -> Experiment:
    """Read and validate an experiment file. Raises SpecError with all problems."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise SpecError(f"{path}: cannot be read: {e.strerror}") from e
    if len(content) > MAX_BYTES:
        raise SpecError(f"{path}: larger than {MAX_BYTES} bytes, which no experiment needs")
    try:
        return parse(content.decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as e:
        raise SpecError(f"{path}: not UTF-8 at byte {e.start}") from e


def parse(text: str, file: str = "experiment") -> Experiment:
    """Validate an experiment's text; `file` names it in errors. Raises SpecError with all problems."""
    tree = yaml_tree.read(text)
    problems = [Problem(place, _dotted(path), message) for path, place, message in tree.problems]
    if isinstance(tree.data, dict):
        problems += _unitless(tree)
        problems += _selection(tree)
        experiment, invalid = _validate(tree)
        problems += invalid
    else:
        experiment = None
        if not problems:
            problems.append(Problem(Place(1, 1), "", "an experiment is a mapping: `name: ...`, `workload: ...`"))
    if problems or experiment is None:
        raise SpecProblems(file, sorted(set(problems), key=lambda p: (p.place.line, p.place.column, p.field)))
    return experiment


def _validate(tree: YamlTree) -> tuple[Experiment | None, list[Problem]]:
    try:
        return Experiment.model_validate(tree.data), []
    except ValidationError as e:
        by_path: dict[yaml_tree.Path, list[ErrorDetails]] = {}
        for error in e.errors(include_url=False):
            by_path.setdefault(_data_path(tree.data, error), []).append(error)
        return None, [_problem(tree, path, errors) for path, errors in by_path.items()]


def _data_path(data: Any, error: ErrorDetails) -> yaml_tree.Path:
    """The part of an error's location that exists in the file (pydantic adds union branches and missing fields)."""
    path: list[str | int] = []
    for part in error["loc"]:
        inside = (isinstance(data, dict) and part in data) or (
            isinstance(data, list) and isinstance(part, int) and part < len(data)
        )
        if not inside:
            break
        path.append(part)
        data = data[part]
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _problem(tree: YamlTree, path: yaml_tree.Path, errors: list[ErrorDetails]) -> Problem:
    place = tree.place(path)
    if errors[0]["type"] == "extra_forbidden":
        return Problem(tree.key_place(path), _dotted(path), _unknown_field(path))
    allowed = " or ".join(dict.fromkeys(_allowed(error) for error in errors))
    value = errors[0]["input"]
    if errors[0]["type"] == "missing":
        return Problem(place, _dotted(path), "this field is required")
    if errors[0]["type"] == "value_error":
        return Problem(place, _dotted(path), allowed)
    return Problem(place, _dotted(path), f"{_near(value, allowed)}{allowed}, got {_shown(value)}")


def _allowed(error: ErrorDetails) -> str:
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input ")
    message = re.sub(r"valid dictionary or instance of \w+", "mapping (`key: value`)", message)
    return message[:1].lower() + message[1:]


def _near(value: Any, allowed: str) -> str:
    near = get_close_matches(str(value).lower(), re.findall(r"'([^']*)'", allowed), n=1)
    return f"did you mean `{near[0]}`? " if near else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _unknown_field(path: yaml_tree.Path) -> str:
    model = _model_at(path[:-1])
    known = list(model.model_fields) if model else []
    near = get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return f"unknown field; {hint}allowed: {', '.join(known)}"


def _model_at(path: yaml_tree.Path) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Experiment
    for part in path:
        field = model.model_fields.get(str(part)) if model else None
        model = field.annotation if field and _is_model(field.annotation) else None  # type: ignore[assignment]
    return model


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _unitless(tree: YamlTree) -> list[Problem]:
    """Bare numbers where a quantity is wanted: stored models may hold them, files may not."""
    problems = []
    for path, unit in _quantities(Experiment, ()):
        value = _at(tree.data, path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            example, units = _UNIT_HINTS[unit]
            message = f"{value} has no unit; write e.g. `{example.format(value)}`; units: {units}"
            problems.append(Problem(tree.place(path), _dotted(path), message))
    return problems


def _quantities(model: type[BaseModel], path: yaml_tree.Path) -> Iterator[tuple[yaml_tree.Path, Callable[..., float]]]:
    for name, field in model.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, BeforeValidator) and mark.func in _UNIT_HINTS:
                yield (*path, name), mark.func
        for part in _union(field.annotation):
            if _is_model(part):
                yield from _quantities(part, (*path, name))


def _union(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _selection(tree: YamlTree) -> list[Problem]:
    path = ("devices", "where")
    expression = _at(tree.data, path)
    if not isinstance(expression, str):
        return []
    try:
        select.parse(expression)
    except SpecError as e:
        return [Problem(tree.place(path), _dotted(path), str(e))]
    return []


def _at(data: Any, path: yaml_tree.Path) -> Any:
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return None
        data = data[part]
    return data


def _dotted(path: yaml_tree.Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
