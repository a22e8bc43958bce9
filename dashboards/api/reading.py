"""Routes of answers, made of their declarations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from starlette.requests import Request

from dashboards.answers import answers
from dashboards.answers.asked import Asked
from dashboards.answers.reading import READS

__all__ = ["add_reads", "answers", "here"]


async def here(request: Request) -> Asked:
    """Return the material of a request, which has passed the door. It waits for nothing: one that is no coroutine would
    go to a thread and back."""
    return Asked(request.app.state.sources, request.scope["actor"])


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
        )(_route(each.answer))  # fmt: skip


def _route(answer: Callable[..., Any]) -> Callable[..., Any]:
    def route(asked: Asked, **given: Any) -> Any:
        return answer(asked, **given)

    own = inspect.signature(answer)
    parameters = list(own.parameters.values())
    first = parameters[0].replace(annotation=Annotated[Asked, Depends(here)])
    route.__signature__ = own.replace(parameters=[first, *parameters[1:]])  # type: ignore[attr-defined]
    return route
