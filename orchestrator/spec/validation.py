"""A YAML text against a model: every problem at once, each with line, column, field and what is allowed."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from orchestrator.model import problem
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import several
from orchestrator.model.quantity import parse_bytes, parse_celsius, parse_seconds

from . import yaml_tree
from .yaml_tree import Place, YamlTree

MAX_BYTES = 1 << 20
NEAR = 0.7
"""The least likeness of a word that is meant, as `difflib` tells it: `gpu` is no misspelt `cpu`, which has 0.67."""
TAG = "kind"
"""Field that says which model of a union is meant."""
Validated = TypeVar("Validated", bound=BaseModel)

_UNIT_HINTS: dict[Callable[[object], float], tuple[str, str]] = {
    parse_seconds: ("{} s", "ns, us, ms, s, min, h"),
    parse_bytes: ("{} MiB", "B, kB, MB, GB, KiB, MiB, GiB"),
    parse_celsius: ("{} C", "C"),
}


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong with a file."""

    place: Place
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class SpecProblems(SpecError):
    """A file is wrong; `problems` holds each, the message lists them all."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(problems)} problem" + "s" * (len(problems) != 1)
        lines = [
            f"{file}:{p.place.line}:{p.place.column}: {p.field + ': ' * bool(p.field)}{p.message}" for p in problems
        ]
        super().__init__("\n  ".join([f"{file}: {count}", *lines]))


def read_text(path: Path) -> str:
    """The text of a file of bounded size. Raises SpecError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise SpecError(f"{path}: cannot be read: {e.strerror}", remedy="check the path of the file") from e
    if len(content) > MAX_BYTES:
        raise SpecError(f"{path}: larger than {MAX_BYTES} bytes, which no such file needs")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        raise SpecError(f"{path}: not UTF-8 at byte {e.start}: save it as text in UTF-8") from e


def validate(
    text: str,
    model: type[Validated],
    file: str,
    wanted: str,
    more: Callable[[YamlTree], list[Problem]] = lambda _: [],
) -> Validated:
    """A text as a model; `wanted` says what belongs there, `more` finds further problems. Raises SpecProblems."""
    tree = yaml_tree.read(text)
    problems = [Problem(place, dotted(path), message) for path, place, message in tree.problems]
    value: Validated | None = None
    if isinstance(tree.data, dict):
        problems += [*_unitless(tree, model), *more(tree)]
        value, invalid = _validated(tree, model)
        problems += invalid
    elif not problems:
        problems.append(Problem(Place(1, 1), "", wanted))
    if problems or value is None:
        raise SpecProblems(file, sorted(set(problems), key=lambda p: (p.place.line, p.place.column, p.field)))
    return value


def _validated(tree: YamlTree, model: type[Validated]) -> tuple[Validated | None, list[Problem]]:
    try:
        return model.model_validate(tree.data), []
    except ValidationError as e:
        by_path: dict[yaml_tree.Path, list[ErrorDetails]] = {}
        for error in _told(e.errors(include_url=False)):
            by_path.setdefault(_data_path(tree.data, error), []).append(error)
        return None, [_problem(tree, model, path, errors) for path, errors in by_path.items()]


def _told(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return errors without lists that are too short only because what is wrong inside of them was left out."""
    inner = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))}
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in inner]


def _data_path(data: Any, error: ErrorDetails) -> yaml_tree.Path:
    """The part of an error's location that exists in the file (pydantic adds union branches and missing fields)."""
    path: list[str | int] = []
    for part in several.in_file(data, error["loc"]):
        if not _holds(data, part):
            if isinstance(data, dict) and data.get(TAG) == part:
                continue
            break
        path.append(part)
        data = data[part]
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    return tuple(path)


def _problem(tree: YamlTree, model: type[BaseModel], path: yaml_tree.Path, errors: list[ErrorDetails]) -> Problem:
    place = tree.place(path)
    if errors[0]["type"] == "extra_forbidden":
        return Problem(tree.key_place(path), dotted(path), _unknown_field(model, tree.data, path))
    if errors[0]["type"] in ("missing", "value_error"):
        return Problem(place, dotted(path), problem.describe(errors[0]))
    allowed = " or ".join(dict.fromkeys(problem.wanted(error) for error in errors))
    value = errors[0]["input"]
    return Problem(place, dotted(path), f"{_near(value, allowed)}expected {allowed}, got {problem.shown(value)}")


def _near(value: Any, allowed: str) -> str:
    near = get_close_matches(str(value).lower(), re.findall(r"'([^']*)'", allowed), n=1, cutoff=NEAR)
    return f"did you mean `{near[0]}`? " if near else ""


def _unknown_field(model: type[BaseModel], data: Any, path: yaml_tree.Path) -> str:
    inner = _model_at(model, data, path[:-1])
    known = list(inner.model_fields) if inner else []
    near = get_close_matches(str(path[-1]), known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return f"unknown field; {hint}allowed: {', '.join(known)}"


def _model_at(model: type[BaseModel], data: Any, path: yaml_tree.Path) -> type[BaseModel] | None:
    annotations: tuple[Any, ...] = (model,)
    for part in path:
        data = data[part]
        annotations = tuple(inner for each in annotations for inner in _inside(each, part, data))
    return next((each for each in annotations if _is_model(each)), None)


def _inside(annotation: Any, part: str | int, value: Any) -> tuple[Any, ...]:
    """Return what may stand under a key or a place: the type of a model's field, of a mapping's values, of a list's.
    Of models with a tag those that the value's tag names."""
    if _is_model(annotation) and isinstance(part, int):  # a list of those of which one may stand there
        found: tuple[Any, ...] = (annotation,)
    elif _is_model(annotation):
        field = annotation.model_fields.get(str(part))
        found = _union(field.annotation) if field else ()
    elif get_origin(annotation) in (dict, tuple):
        found = _union(get_args(annotation)[0 if isinstance(part, int) else 1])
    else:
        return ()
    return tuple(each for each in found if _has_tag(each, value))


def _has_tag(annotation: Any, value: Any) -> bool:
    tag = annotation.model_fields.get(TAG) if _is_model(annotation) else None
    return tag is None or not isinstance(value, dict) or value.get(TAG) in get_args(tag.annotation)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _unitless(tree: YamlTree, model: type[BaseModel]) -> list[Problem]:
    """Bare numbers where a quantity is wanted: stored models may hold them, files may not."""
    problems = []
    for path, unit in _quantities(model, tree.data, ()):
        value = at(tree.data, path)
        if isinstance(value, int | float) and not isinstance(value, bool):
            example, units = _UNIT_HINTS[unit]
            message = f"{value} has no unit; write e.g. `{example.format(value)}`; units: {units}"
            problems.append(Problem(tree.place(path), dotted(path), message))
    return problems


def _quantities(
    annotation: Any, data: Any, path: yaml_tree.Path
) -> Iterator[tuple[yaml_tree.Path, Callable[..., float]]]:
    """Paths in the data at which a quantity with a unit is wanted."""
    for name, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if _is_model(annotation) and name in annotation.model_fields:
            yield from (((*path, name), unit) for unit in _units(annotation.model_fields[name]))
        for inner in _inside(annotation, name, value):
            yield from _quantities(inner, value, (*path, name))


def _units(field: Any) -> Iterator[Callable[..., float]]:
    """Yield units, also of an optional quantity, whose mark stands inside the union."""
    inner = (mark for part in _union(field.annotation) for mark in getattr(part, "__metadata__", ()))
    for mark in (*field.metadata, *inner):
        if isinstance(mark, BeforeValidator) and mark.func in _UNIT_HINTS:
            yield mark.func


def _union(annotation: Any) -> tuple[Any, ...]:
    kinds = (Union, types.UnionType)
    if get_origin(annotation) is Annotated:
        inner = get_args(annotation)[0]
        return _union(inner) if _is_model(inner) or get_origin(inner) in kinds else (annotation,)
    if get_origin(annotation) in kinds:
        return tuple(part for each in get_args(annotation) for part in _union(each))
    return (annotation,)


def at(data: Any, path: yaml_tree.Path) -> Any:
    """The value at a path; None where there is none."""
    for part in path:
        if not _holds(data, part):
            return None
        data = data[part]
    return data


def _holds(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def dotted(path: yaml_tree.Path) -> str:
    """`("devices", "where")` -> `devices.where`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
