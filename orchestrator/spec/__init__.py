"""Experiment files: YAML -> `Experiment` -> jobs (`expansion/`), or every problem: line, field, what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from orchestrator.model import problem
from orchestrator.model.errors import SpecError, StableError
from orchestrator.model.experiment import Conditions, Experiment, Published, Study, why_taken

from .expansion import device_selection as select
from .validation import MAX_BYTES, Problem, SpecProblems, at, dotted, read_text, validate
from .yaml_tree import YamlTree, read

Refused = TypeVar("Refused", bound=StableError)

__all__ = ["MAX_BYTES", "Problem", "SpecProblems", "load", "load_study", "located", "parse", "taken_names"]


def load(path: Path) -> Experiment:
    """Read and validate an experiment file and its study's. Raises SpecError with all problems."""
    found = parse(read_text(path), str(path))
    if found.published is None or not isinstance(found.published.study, str):
        return found
    study = load_study(path.parent / found.published.study)
    own = study.only(table.table for table in found.published.tables)
    try:
        published = Published.model_validate({**dict(found.published), "study": study})
    except ValidationError as e:
        raise located(SpecError("published: " + problem.describe(e.errors()[0])), path) from e
    return found.model_copy(update={"published": published.model_copy(update={"study": own})})


def load_study(path: Path) -> Study:
    """Read and validate a study's file. Raises SpecError with all problems."""
    return validate(read_text(path), Study, str(path), "a study is a mapping: `source: ...`, `cells: ...`")


def parse(text: str, file: str = "experiment") -> Experiment:
    """Validate an experiment's text; `file` names it in errors. Raises SpecError with all problems."""
    wanted = "an experiment is a mapping: `name: ...`, `workload: ...`"
    checks = (_selection, taken_names, _impossible, _own_figures)
    return validate(text, Experiment, file, wanted, lambda tree: [found for check in checks for found in check(tree)])


def located(error: Refused, file: Path) -> Refused:
    """An error that begins with the name of a field (`matrix.algorithm: ...`), with the place of that in the file."""
    message = str(error.args[0])
    field = tuple(message.partition(": ")[0].split("."))
    tree = read(read_text(file))
    place = tree.place(field) if at(tree.data, field[:1]) is not None else None
    where = f"{file}:{place.line}:{place.column}" if place else str(file)
    return type(error)(f"{where}: {message}", remedy=error.remedy)


def taken_names(tree: YamlTree) -> list[Problem]:
    """A name that a command would take for something else: it could be submitted, but never be asked for."""
    name = at(tree.data, ("name",))
    why = why_taken(name) if isinstance(name, str) else ""
    return [Problem(tree.place(("name",)), "name", f"{why}: choose another name")] if why else []


def _selection(tree: YamlTree) -> list[Problem]:
    path = ("devices", "where")
    expression = at(tree.data, path)
    if not isinstance(expression, str):
        return []
    try:
        select.parse(expression)
    except SpecError as e:
        return [Problem(tree.place(path), dotted(path), str(e))]
    return []


def _impossible(tree: YamlTree) -> list[Problem]:
    try:
        wanted = Conditions.model_validate(at(tree.data, ("conditions",)) or {})
    except ValidationError:  # told already
        return []
    found = [(("conditions", *path), why) for path, why in wanted.impossible()]
    return [Problem(tree.place(path), dotted(path), why) for path, why in found]


def _own_figures(tree: YamlTree) -> list[Problem]:
    path = ("published", "source")
    if at(tree.data, path) is None:
        return []
    return [Problem(tree.key_place(path), dotted(path), "figures are in a study's file: give `published.study`")]
