"""Declare answers, each with its path and its right: they read what pages and `--json` read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.model.rights import Place, Right

from .asked import Asked

T = TypeVar("T")
First = Annotated[int, Field(ge=0, le=10**9, description="Which one comes first.")]
Most = Annotated[int, Field(ge=1, le=500, description="The number of them at most.")]
Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A filter; empty: none."""
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""An id in a path."""


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    model_config = ConfigDict(frozen=True)

    items: list[T]
    first: int = Field(description="The place of the first of them in the list.")
    total: int = Field(description="The length of the list.")
    next: int | None = Field(description="`first` of the page that follows; null: this is the last one.")


def cut(whole: list[T], first: int, most: int) -> Page[T]:
    """Return a part of a list."""
    return page(whole[first : first + most], first, len(whole))


def page(items: list[T], first: int, total: int) -> Page[T]:
    """Return a part that is cut already, of a list of this length."""
    after = first + len(items)
    return Page(items=items, first=first, total=total, next=after if items and after < total else None)


@dataclass(frozen=True)
class Read:
    """An answer, with the path of its route."""

    path: str
    needs: Right
    answer: Callable[..., Any]
    made: Any
    """Its type."""


READS: dict[str, Read] = {}
"""All answers, by their path: there is none without its right."""
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
        answer.__signature__ = own  # type: ignore[attr-defined]
        READS[path] = Read(path, needs, answer, own.return_annotation)
        return answer

    return registered


def declared(answer: Callable[..., Any]) -> Read:
    """Return the declaration of an answer."""
    return next(each for each in READS.values() if each.answer is answer)
