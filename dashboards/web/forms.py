"""The forms that people send: the token to sign in, and what is to be done."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from inspect import signature
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orchestrator.acts import ON_PAGES, Actor, Done, Door, Site
from orchestrator.model.errors import FarmError, SpecError, UnknownName
from orchestrator.model.quantity import parse_seconds
from orchestrator.model.rights import WHOLE

from . import shown
from .access import LASTS_S, Access, is_ours
from .renderer import Renderer

log = logging.getLogger(__name__)
LONGEST = 16_384
"""Bytes of a form."""


class Forms:
    """Nothing is done without a session and the token of its forms."""

    def __init__(self, access: Access, site: Callable[[], Site], renderer: Renderer) -> None:
        self._access, self._site, self._renderer = access, site, renderer

    async def sign_in_page(self, request: Request) -> Response:
        return await self._asks(request, wrong=False)

    async def sign_in(self, request: Request) -> Response:
        sent = await _sent(request)
        if sent is None or not is_ours(request):
            return _refused(request)
        cookie = self._access.enter(sent.get("token", ""), sent.get("name", ""))
        if cookie is None:
            log.warning("event=sign_in_refused")
            return await self._asks(request, wrong=True)
        response = RedirectResponse(_way_back(sent), 303)
        response.set_cookie(
            self._access.cookie,
            cookie,
            max_age=int(LASTS_S),
            httponly=True,
            samesite="strict",
            secure=self._access.secure,
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        sent = await _sent(request)
        if sent is None or not self._access.may_act(request, sent.get("form_token", "")):
            return _refused(request)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self._access.cookie)
        return response

    async def act(self, request: Request) -> Response:
        """Do it, and go back to where it was asked for, which tells how it went."""
        sent, deed = await _sent(request), ON_PAGES.get(request.path_params["what"])
        session = self._access.session(request)
        if sent is None or session is None or not self._access.may_act(request, sent.get("form_token", "")):
            return _refused(request)
        if deed is None:
            return self._renderer.refused(request, UnknownName("there is no such action"))
        try:
            actor = Actor(session.name, Door.PAGE, WHOLE, request.client.host if request.client else "")
            done = await run_in_threadpool(lambda: _do(deed, self._site(), actor, sent))
            text, bad = done.text, not done.ok
        except FarmError as e:
            text, bad = "; ".join(filter(None, (str(e.args[0]), e.remedy))), True
        log.info("event=acted what=%s who=%r target=%r bad=%s", request.path_params["what"], session.name,
                 sent.get("target", ""), bad)  # fmt: skip
        response = RedirectResponse(_way_back(sent), 303)
        shown.tell(response, text, bad=bad)
        return response

    async def _asks(self, request: Request, *, wrong: bool) -> Response:
        back = request.query_params.get("back", "/")
        data = {"wrong": wrong, "back": back if _is_way(back) else "/"}
        return await run_in_threadpool(
            self._renderer.own_page, request, "sign_in.html.j2", "Sign in", data, 403 if wrong else 200
        )


async def _sent(request: Request) -> dict[str, str] | None:
    """The fields of a form; None where it is too long, or none."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > LONGEST:
        return None
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return None


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
    """Unix time; None: no end. Raises SpecError where it is no time."""
    if not lasting.strip():
        return None
    try:
        return time.time() + parse_seconds(lasting)
    except ValueError as e:
        raise SpecError(f"for {lasting!r}: {e}", remedy="write `3 h` or `30 min`, or leave it empty") from e


READ: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "Sequence[str]": lambda text: [text],
    "float | None": _end,
}
"""Annotation of an act's parameter -> its value from the text of a field."""


def _way_back(sent: Mapping[str, str]) -> str:
    back = sent.get("back", "/")
    return back if _is_way(back) else "/"


def _is_way(address: str) -> bool:
    """Return whether it leads to a page of ours."""
    return address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()


def _refused(request: Request) -> Response:
    log.warning("event=form_refused path=%s", request.url.path)
    response = RedirectResponse("/sign-in", 303)
    shown.tell(response, "That was not done: sign in, and send it from a page of this farm.", bad=True)
    return response
