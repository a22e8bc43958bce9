"""Routes of answers: each is declared with its right, and reads what pages and `--json` read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, FastAPI, Query
from pydantic import BaseModel, ConfigDict, Field

from orchestrator.model.rights import Place, Right

from .asked import Asked, here

T = TypeVar("T")
First = Annotated[int, Query(ge=0, le=10**9, description="Which one comes first.")]
Most = Annotated[int, Query(ge=1, le=500, description="The number of them at most.")]
Word = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A filter; empty: none."""


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    model_config = ConfigDict(frozen=True)

    items: list[T]
    first: int = Field(description="The place of the first of them in the list.")
    total: int = Field(description="The length of the list.")
    next: int | None = Field(description="`first` of the page that follows; null: this is the last one.")


def page(items: list[T], first: int, total: int) -> Page[T]:
    """Cut a list."""
    after = first + len(items)
    return Page(items=items, first=first, total=total, next=after if items and after < total else None)


@dataclass(frozen=True)
class Read:
    """A route that only reads."""

    path: str
    needs: Right
    answer: Callable[..., Any]


READS: dict[str, Read] = {}
"""All routes that read, by their path: there is none without its right."""
Of = Callable[[Asked, dict[str, Any]], Iterable[Place]]


def read(path: str, needs: Right, of: Of | None = None) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Register what answers `GET path`, with the right that it takes. `of`: what it is about, where its right is of a
    project or of owners."""

    def registered(does: Callable[..., T]) -> Callable[..., T]:
        @wraps(does)
        def answer(asked: Asked, **given: Any) -> T:
            what = next(map(str, given.values()), "")
            asked.let(needs, of(asked, given) if of is not None else (), what)
            return does(asked, **given)

        own = inspect.signature(does, eval_str=True)
        first = own.parameters["asked"].replace(annotation=Annotated[Asked, Depends(here)])
        rest = [each for each in own.parameters.values() if each.name != "asked"]
        answer.__signature__ = own.replace(parameters=[first, *rest])  # type: ignore[attr-defined]
        READS[path] = Read(path, needs, answer)
        return answer

    return registered


def add_reads(app: FastAPI) -> None:
    """Give every answer its route."""
    for path, each in READS.items():
        own = f" For one's own: `{each.needs.own}`." if each.needs.own else ""
        app.get(
            path, operation_id=each.answer.__name__, tags=["answers"],
            summary=(inspect.getdoc(each.answer) or "").split("\n\n", 1)[0].replace("\n", " "),
            description=f"Takes the role `{each.needs.least}` ({each.needs.of}).{own}",
            responses={304: {"description": "It is as `If-None-Match` says."}},
            openapi_extra={"x-right": vars(each.needs)},
        )(each.answer)  # fmt: skip
