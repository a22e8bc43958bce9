"""Problem details (RFC 9457): what went wrong, where, and how to mend it, as the command line tells it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from orchestrator.acts import Actor
from orchestrator.model import errors
from orchestrator.model.errors import FarmError
from orchestrator.model.problem import describe

MEDIA = "application/problem+json"
STATUS: dict[type[FarmError], int] = {
    errors.UnknownName: 404,
    errors.NotAllowed: 403,
    errors.DeviceBusy: 409,
    errors.KeyTaken: 409,
    errors.TransientError: 503,
    errors.StableError: 422,
}
"""Status of an error: that of the first class here that it is."""
MOST_TOLD = 20
"""Faults of one request that are told."""


class Problem(BaseModel):
    """The form of a fault."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(default="about:blank", description="Always `about:blank`: `cause` says which kind it is.")
    title: str = Field(description="The status in words.")
    status: int
    detail: str = Field(description="What happened.")
    cause: str = Field(description="A stable word of the kind of fault.")
    where: str | None = Field(default=None, description="The device or field that it concerns.")
    remedy: str | None = Field(default=None, description="What to do.")


def problem(
    status: int, cause: str, detail: str, remedy: str | None = None, headers: Mapping[str, str] | None = None,
    where: str | None = None,
) -> Response:  # fmt: skip
    """Return the answer that tells a fault."""
    title = HTTPStatus(status).phrase
    body = Problem(title=title, status=status, detail=detail, cause=cause, where=where, remedy=remedy)
    return JSONResponse(body.model_dump(), status, {**(headers or {}), "Cache-Control": "no-store"}, MEDIA)


def told(error: FarmError, actor: Actor | None = None) -> Response:
    """Return the answer of an error. Whoever may not see the whole farm is told no names that they did not say."""
    status = next(found for kind, found in STATUS.items() if isinstance(error, kind))
    knows = actor is not None and actor.grants.visible is None
    remedy = error.remedy if knows or status != 404 else None
    headers = {"Retry-After": "1"} if status in (409, 503) else {}
    return problem(status, error.cause, str(error.args[0]), remedy, headers, error.device)


async def of_farm(request: Request, error: Exception) -> Response:
    assert isinstance(error, FarmError)
    return told(error, request.scope.get("actor"))


async def of_request(_: Request, error: Exception) -> Response:
    """Tell what of a request is not as its form says."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    fields = [".".join(map(str, each["loc"])) for each in found]
    detail = "; ".join(f"{field}: {_described(each)}" for field, each in zip(fields, found[:MOST_TOLD], strict=False))
    remedy = "send it as openapi.json describes it"
    return problem(422, "request", detail[:4000], remedy, where=fields[0][:200] if fields else None)


def _described(fault: Any) -> str:
    return describe(fault) if fault.get("loc") else str(fault.get("msg", ""))


async def of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, "request", str(error.detail), None, error.headers)


async def of_fault(_: Request, error: Exception) -> Response:
    remedy = "report it; the log of the farm's pages says where it comes from"
    return problem(500, "internal", f"{type(error).__name__} in the farm", remedy)


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, text in {
        400: "The request is no HTTP that the farm understands.",
        401: "No token of this farm was shown.",
        403: "Who asks has no right to it.",
        404: "There is no such thing, or none that who asks may know of.",
        408: "The body did not come in time.",
        409: "Somebody else holds it, or the same key is in use: try again.",
        413: "The body is too long.",
        422: "The request cannot work as it is.",
        503: "A part of the farm is away: try again.",
    }.items()
}
"""The answers that every route may give beside its own."""
