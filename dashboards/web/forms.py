"""The forms that people send: what is to be done."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from inspect import signature
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dashboards.answers.turns import ACTS
from orchestrator.acts import ON_PAGES, Actor, Done, Door, Site
from orchestrator.model.errors import FarmError, SpecError, UnknownName
from orchestrator.model.people import Role
from orchestrator.model.quantity import parse_moment, parse_seconds

from . import shown
from .access import Access
from .renderer import Renderer

log = logging.getLogger(__name__)
LONGEST = 16_384
"""Bytes of a form."""


class Forms:
    """Nothing is done without a session and the token of its forms."""

    def __init__(self, access: Access, site: Callable[[], Site], renderer: Renderer) -> None:
        self._access, self._site, self._renderer = access, site, renderer

    async def act(self, request: Request) -> Response:
        """Do it, and go back to where it was asked for, which tells how it went."""
        sent, deed = await sent_form(request), ON_PAGES.get(request.path_params["what"])
        session = self._access.session(request)
        if sent is None or session is None or not self._access.may_act(request, sent.get("form_token", "")):
            return refused(request)
        if deed is None:
            return self._renderer.refused(request, UnknownName("there is no such action"))
        try:
            actor = Actor(session.name, Door.PAGE, session.grants, origin(request))
            done = await ACTS.of(lambda: _do(deed, self._site(), actor, sent))
            text, bad = f"{done.text} {_shown_once(request, done)}".strip(), not done.ok
            if done.shows:
                return await run_in_threadpool(self._renderer.made, request, done, way_back(sent))
        except FarmError as e:
            text, bad = "; ".join(filter(None, (str(e.args[0]), e.remedy))), True
        log.info("event=acted what=%s who=%r target=%r bad=%s", request.path_params["what"], session.name,
                 sent.get("target", ""), bad)  # fmt: skip
        response = RedirectResponse(way_back(sent), 303)
        shown.tell(request, response, text, bad=bad)
        return response


async def sent_form(request: Request) -> dict[str, str] | None:
    """Return the fields of a form; None where it is too long, or none."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > LONGEST:
        return None
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return None


def origin(request: Request) -> str:
    """Return the address from which a request came."""
    return request.client.host if request.client else ""


def _shown_once(request: Request, done: Done) -> str:
    """Return the secret of what was made; the way of a link with the address of these pages."""
    return str(request.base_url).rstrip("/") + done.secret if done.secret.startswith("/") else done.secret


def _do(deed: Callable[..., Done], site: Site, actor: Actor, sent: Mapping[str, str]) -> Done:
    """Do an act with the fields of a form. Raises FarmError."""
    first, *others = list(signature(deed).parameters.values())[1:]
    given = {
        each.name: READ[each.annotation](sent.get(each.name, ""))
        for each in others
        if each.name in sent or each.default is each.empty
    }
    return deed(site, actor, READ[first.annotation](sent.get("target", "")), **given)


def _end(lasting: str) -> float | None:
    """Unix time, so long from now or at this moment; None: not said. Raises SpecError where it is no time."""
    if not (text := lasting.strip()):
        return None
    try:
        return parse_moment(text) if re.search(r"\d[:-]\d", text) else time.time() + parse_seconds(text)
    except ValueError as e:
        remedy = "write `3 h` or `30 min`, `16:00` or `2026-12-01 08:00`, or leave it empty"
        raise SpecError(f"for {lasting!r}: {e}", remedy=remedy) from e


def _number(text: str) -> int:
    """Return a whole number. Raises SpecError."""
    if not text.isdecimal() or len(text) > 9:
        raise SpecError(f"{text[:80]!r} is no number", remedy="write a whole number, or leave it empty")
    return int(text)


def _figure(text: str) -> float | None:
    """Return a number; None: not said. Raises SpecError."""
    if not text.strip():
        return None
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip()):
        raise SpecError(f"{text[:80]!r} is no number", remedy="write one such as 2 or 0.5, or leave it empty")
    return float(text)


def _role(text: str) -> Role:
    if text not in [*Role]:
        raise SpecError(f"there is no role {text[:80]!r}", remedy=f"the roles are {', '.join(Role)}")
    return Role(text)


READ: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "str | None": str,
    "int": _number,
    "int | None": lambda text: _number(text) if text.strip() else None,
    "bool": bool,
    "Role": _role,
    "Figure | None": _figure,
    "Sequence[str]": lambda text: [text],
    "float | None": _end,
}
"""Annotation of an act's parameter -> its value from the text of a field."""


def way_back(sent: Mapping[str, str]) -> str:
    """Return the page of ours from which a form came."""
    back = sent.get("back", "/")
    return back if is_way(back) else "/"


def is_way(address: str) -> bool:
    """Return whether it leads to a page of ours."""
    return address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()


def refused(request: Request) -> Response:
    """Answer a form that is not ours, or nobody's."""
    log.warning("event=form_refused path=%s", request.url.path)
    response = RedirectResponse("/sign-in", 303)
    shown.tell(request, response, "That was not done: sign in, and send it from a page of this farm.", bad=True)
    return response
