"""A farm elsewhere: acts and answers go over HTTP, by the routes that are made of their declarations."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from inspect import signature, unwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from client import Answer, Line, Refused
from client.spec_files import files_of
from dashboards.answers import answers
from dashboards.answers.reading import Page, declared
from farm.access import pick
from orchestrator.acts import RIGHTS, Done
from orchestrator.model import errors
from orchestrator.model.errors import FarmError, ModelFileError, SetupError, SpecError, Unsupported

if TYPE_CHECKING:
    from dashboards.answers.answers import Brief
    from farm.endpoints import Login
    from orchestrator.answers.fleet import Snapshot
    from orchestrator.model.record import Record

T = TypeVar("T")


@contextmanager
def opened(login: Login) -> Iterator[Line]:
    """The line to a farm; what that refuses is an error of the farm's, as it would be there."""
    with _as_here():
        line = Line(login.url, login.token.get_secret_value(), login.ca)
        try:
            yield line
        finally:
            line.close()


@contextmanager
def _as_here() -> Iterator[None]:
    try:
        yield
    except Refused as e:
        remedy = "log in: `farm login URL`" if e.cause == "unknown_token" else e.remedy
        error = _errors().get(e.cause, SetupError)(e.detail, remedy=remedy or "")
        error.cause, error.device, error.remedy = e.cause, e.where, remedy
        raise error from e
    except ValidationError as e:
        what = "the farm answers in a form that this version does not know"
        raise SetupError(what, remedy="use the same version here and there") from e


@cache
def _errors() -> dict[str, Callable[..., FarmError]]:
    """The errors of the farm, by their word."""
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, FarmError)]
    return {each.cause: each for each in reversed(found)}


@dataclass(frozen=True)
class Told(Done):
    """The result of an act, as a farm elsewhere tells it."""

    answered: Answer

    @property
    def lines(self) -> list[str]:
        return self.answered.said

    @property
    def did(self) -> bool:
        return self.answered.did

    @property
    def ok(self) -> bool:
        return self.answered.ok

    @property
    def data(self) -> dict[str, Any]:
        return self.answered.result


@dataclass(frozen=True)
class There:
    """A farm elsewhere, by its line."""

    line: Line

    def ask(self, answer: Callable[..., T], **given: Any) -> T:
        read = declared(answer)
        path = read.path.format(**given)
        query = {name: value for name, value in given.items() if f"{{{name}}}" not in read.path and value is not None}
        made: T = TypeAdapter(read.made).validate_python(self.line.get(path, **query))
        return made

    def every(self, answer: Callable[..., Page[T]], **given: Any) -> list[T]:
        first: int | None = 0
        found = list[T]()
        while first is not None:
            page = self.ask(answer, first=first, most=500, **given)
            found += page.items
            first = page.next
        return found

    def act(self, does: Callable[..., Done], *args: Any, **options: Any) -> Done:
        name = next(each.name for each in RIGHTS.values() if each.does is does)
        given = signature(unwrap(does)).bind(None, *args, **options)
        body = {key: list(value) if isinstance(value, tuple) else value for key, value in given.arguments.items()}
        body.pop(next(iter(given.signature.parameters)))
        return Told(self.line.act(name, once=RIGHTS[name].once, **body))

    def submit(self, file: Path, *, again: bool, project: str) -> Done:
        from orchestrator import spec

        from .one_file import in_one_file

        spec.load(file)  # what is wrong with it is told by its own lines
        tree = spec.yaml_tree.read(file.read_text()).data
        with TemporaryDirectory(prefix="farm-models-") as scratch:
            files = {
                name: in_one_file(path, Path(scratch) / str(number))
                for number, (name, path) in enumerate(files_of(tree, file.parent).items())
            }
            sent = {name: self.line.send(path, project) for name, path in files.items()}
        body = {"experiment": tree, "files": sent, "project": project, "again": again}
        try:
            with _as_here():
                return Told(self.line.act("submit", once=True, **body))
        except (SpecError, ModelFileError) as e:
            raise spec.located(e, file) from e

    def find(self, name: str) -> Brief:
        known = {each.experiment: each for each in reversed(self.every(answers.experiments))}
        return known[pick({key: each.name for key, each in known.items()}, name)]

    def looks(self, experiment_id: str | None, limit_s: float | None) -> Iterator[Snapshot]:
        from orchestrator.answers.fleet import Snapshot

        if experiment_id is None:
            raise Unsupported("a farm elsewhere is watched experiment by experiment", remedy="name one, or `latest`")
        until = float("inf") if limit_s is None else time.monotonic() + limit_s
        for event in self.line.events(f"/experiments/{experiment_id}/progress", until=until, look=True):
            yield TypeAdapter(Snapshot).validate_python({**event["look"], "at": time.time()})

    def table(self, experiment_id: str, form: str, what: str | None, file: IO[bytes]) -> tuple[str, int]:
        told = self.line.save(f"/experiments/{experiment_id}/table", file, form=form, what=what or "")
        return told["X-What"], int(told["X-Rows"])

    def report(self, experiment_id: str) -> tuple[str, int]:
        file = io.BytesIO()
        told = self.line.save(f"/experiments/{experiment_id}/report", file)
        return file.getvalue().decode(), int(told["X-Results"])

    def records(self, _experiment_id: str) -> list[Record]:
        raise Unsupported("raw records stay at the farm", remedy="`farm export` has their figures; or run it there")

    def pruned(self, _experiment_id: str) -> Mapping[str, int]:
        return {}
