"""Routes of acts: a body's form is made of the act's own parameters, its answer of its result."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from fastapi import Depends, FastAPI, Header
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model
from starlette.responses import JSONResponse, Response

from dashboards.answers.asked import Asked
from dashboards.answers.turns import ACTS, Turns
from orchestrator.acts import RIGHTS, Act, Actor, Done, DoneBefore
from orchestrator.model.experiment import Experiment
from orchestrator.model.people import Role
from orchestrator.model.rights import Once

from .reading import here

Line = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A text without what controls a terminal, and without what PostgreSQL cannot store."""
Names = Annotated[list[Line], Field(max_length=1000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[float, Field(ge=0, lt=1e11, allow_inf_nan=False)]
FORMS: dict[Any, Any] = {
    str: Line,
    Sequence[str]: Names,
    Mapping[str, str] | None: Annotated[dict[Line, Sha256], Field(max_length=10_000)] | None,
    bool: bool,
    str | None: Line | None,
    float | None: Moment | None,
    int | None: Annotated[int, Field(ge=0, lt=2**31)] | None,
    int: Annotated[int, Field(ge=0, lt=2**31)],
    Role: Role,
    Experiment: Experiment,
}
"""Types of an act's parameters that have a form in JSON."""
TURNS = {False: ACTS, True: Turns(2)}
"""The turns by `Act.once`: submissions compute, and who reads shares the interpreter with two of them at most."""
LEFT_OUT = Path | None
"""The folder of what came without one."""


class Answer(BaseModel):
    """The result of an act."""

    model_config = ConfigDict(frozen=True)

    did: bool = Field(description="Whether anything was changed.")
    ok: bool = Field(description="Whether all is done that was asked for.")
    said: list[str] = Field(description="What it tells a person.")
    result: dict[str, Any] = Field(description="The same for programs, as `--json` prints it.")


Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="The same request with the same key is done once in a day, and answered the same.",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
    ),
]


def offered() -> dict[str, tuple[Act, type[BaseModel]]]:
    """Return the acts that have a form, which is all whose parameters have one, by their route."""
    return {
        f"/acts/{name.replace(' ', '-')}": (each, form)
        for name, each in sorted(RIGHTS.items())
        if each.routed and (form := form_of(each)) is not None
    }


def form_of(act: Act) -> type[BaseModel] | None:
    """Return the form of an act's body; None where a parameter has none, as a folder of this machine."""
    plain = inspect.unwrap(act.does)
    hints, fields = get_type_hints(plain), dict[str, Any]()
    for each in list(inspect.signature(plain).parameters.values())[1:]:
        kind = hints[each.name]
        if kind == LEFT_OUT:
            continue
        kind = Sequence[str] if each.kind is each.VAR_POSITIONAL and kind is str else kind
        if kind not in FORMS:
            return None
        fields[each.name] = (FORMS[kind], ... if each.default is each.empty else each.default)
    return create_model(
        "".join(word.capitalize() for word in act.name.split()),
        __config__=ConfigDict(extra="forbid", frozen=True),
        **fields,
    )


def add_acts(app: FastAPI) -> None:
    """Give every act that has a form its route."""
    for path, (act, form) in offered().items():
        app.post(
            path, name=act.name, operation_id=act.name.replace(" ", "_"), tags=["acts"], summary=_summary(act),
            description=_right(act), response_model=Answer, openapi_extra={"x-right": vars(act.needs)},
        )(_route(act, form))  # fmt: skip


def _summary(act: Act) -> str:
    return (inspect.getdoc(act.does) or act.name).split("\n\n", 1)[0].replace("\n", " ")


def _right(act: Act) -> str:
    own = f" For one's own: `{act.needs.own}`." if act.needs.own else ""
    return f"Takes the role `{act.needs.least}` ({act.needs.of}).{own}"


def _route(act: Act, form: type[BaseModel]) -> Callable[..., Any]:
    async def keyed(asked: Asked, body: Any, key: str | None = None) -> Response:
        return await TURNS[act.once].of(_done, act, asked, body, key)

    async def plain(asked: Asked, body: Any) -> Response:
        return await keyed(asked, body)

    route: Callable[..., Any] = keyed if act.once else plain
    given = {"asked": Annotated[Asked, Depends(here)], "body": form, "key": Key}
    parameters = inspect.signature(route).parameters.values()
    signature = [each.replace(annotation=given[each.name]) for each in parameters]
    route.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return route


def _once(actor: Actor, act: Act, key: str, body: BaseModel) -> Actor:
    request = f"{act.name}\n{body.model_dump_json()}"
    once = Once(key, hashlib.sha256(request.encode()).hexdigest())
    return Actor(actor.who, actor.door, actor.grants, actor.origin, once)


def _done(act: Act, asked: Asked, body: BaseModel, key: str | None) -> Response:
    actor = asked.actor if key is None else _once(asked.actor, act, key, body)
    args, options = list[Any](), dict[str, Any]()
    for each in list(inspect.signature(act.does).parameters.values())[1:]:
        value = getattr(body, each.name, None)
        if each.kind is each.VAR_POSITIONAL:
            args += value or ()
        elif each.kind is each.KEYWORD_ONLY:
            options[each.name] = value
        else:
            args.append(value)
    try:
        done: Done = act.does(asked.site(), actor, *args, **options)
    except DoneBefore as before:
        return JSONResponse(before.answer, headers={"Idempotency-Replayed": "true"})
    return JSONResponse(json.loads(json.dumps(done.answer, default=str, allow_nan=False)))
