"""Log in and out: an owner by the farm's token, people by name and password, which they set by a link of one use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import ceil

from pydantic import SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dashboards.web import shown
from dashboards.web.access import LASTS_S, Access, is_ours
from dashboards.web.forms import is_way, origin, refused, sent_form, way_back
from dashboards.web.renderer import Renderer
from orchestrator.acts import Actor, Door, Site, passwords
from orchestrator.ledger.people.tokens import Bearer
from orchestrator.model.errors import FarmError, NotAllowed
from orchestrator.model.people import Use

from .attempts import Attempts

log = logging.getLogger(__name__)
OWNER = ""
"""The name under which attempts at the farm's token count."""


class LogIn:
    """The ways to a session, and out of it."""

    def __init__(self, access: Access, site: Callable[[], Site], renderer: Renderer) -> None:
        self._access, self._site, self._renderer = access, site, renderer
        self._attempts = Attempts()

    async def page(self, request: Request) -> Response:
        return await run_in_threadpool(self._asks, request, request.query_params.get("back", "/"))

    async def enter(self, request: Request) -> Response:
        sent = await sent_form(request)
        if sent is None or not is_ours(request):
            return refused(request)
        return await run_in_threadpool(self._enter, request, sent)

    async def leave(self, request: Request) -> Response:
        sent = await sent_form(request)
        if sent is None or not self._access.may_act(request, sent.get("form_token", "")):
            return refused(request)
        session = self._access.session(request)
        if session is not None and session.token:
            await run_in_threadpool(self._access.people.tokens.end, session.token)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self._access.cookie)
        return response

    async def password_page(self, request: Request) -> Response:
        return await run_in_threadpool(self._asks_password, request)

    async def set_password(self, request: Request) -> Response:
        sent = await sent_form(request)
        if sent is None or not is_ours(request):
            return refused(request)
        return await run_in_threadpool(self._set, request, sent)

    def _enter(self, request: Request, sent: dict[str, str]) -> Response:
        """Let somebody in. One who tries too often is told for how long, whatever they show."""
        by_token, address = bool(sent.get("token", "").strip()), origin(request)
        name = " ".join(sent.get("name", "").split())
        counted = OWNER if by_token else name
        if wait_s := self._attempts.begin(counted, address):
            log.warning("event=sign_in_bounded origin=%s", address)
            text = f"That was tried too often: wait for {ceil(wait_s)} s."
            return self._asks(request, way_back(sent), text, 429, {"Retry-After": str(ceil(wait_s))})
        try:
            known, password = self._access, sent.get("password", "")
            cookie = known.enter(sent["token"], name) if by_token else known.log_in(name, password)
        except FarmError as e:
            return self._renderer.refused(request, e)
        if cookie is None:
            log.warning("event=sign_in_refused origin=%s", address)
            text = "That is not the token of this farm." if by_token else "Nobody here has this name and password."
            return self._asks(request, way_back(sent), text, 403)
        self._attempts.went_well(counted, address)
        return self._let_in(way_back(sent), cookie)

    def _let_in(self, back: str, cookie: str) -> Response:
        response = RedirectResponse(back, 303)
        response.set_cookie(
            self._access.cookie,
            cookie,
            max_age=int(LASTS_S),
            httponly=True,
            samesite="strict",
            secure=self._access.secure,
        )
        return response

    def _set(self, request: Request, sent: dict[str, str]) -> Response:
        """Set the password of whoever shows a token for it, or of a session whose person says the old one."""
        password, session = sent.get("password", ""), self._access.session(request)
        try:
            if password != sent.get("again", ""):
                raise NotAllowed("the two passwords are not the same", remedy="type the new one twice")
            person = self._person(request, sent)
            who = Actor(person.person, Door.PAGE, person.grants, origin(request))
            done = passwords.set_password(self._site(), who, person.person, SecretStr(password))
            cookie = self._access.log_in(person.person, password)
        except FarmError as e:
            text = ": ".join(filter(None, (str(e.args[0]), e.remedy)))
            return self._asks_password(request, f"{text[0].upper()}{text[1:]}.", sent.get("token", ""), 403)
        response = self._let_in("/" if session is None else "/me", cookie or "")
        shown.tell(request, response, done.text, bad=False)
        return response

    def _person(self, request: Request, sent: dict[str, str]) -> Bearer:
        """Return the person whose password may be set. Raises FarmError."""
        session, address = self._access.session(request), origin(request)
        name = session.name if session is not None and session.token and not sent.get("token") else ""
        if wait_s := self._attempts.begin(name, address):
            raise NotAllowed(f"that was tried too often: wait for {ceil(wait_s)} s")
        if name and session is not None:
            may, old = self._access.may_act(request, sent.get("form_token", "")), sent.get("old", "")
            if may and self._access.people.passwords.fits(name, old):
                self._attempts.went_well(name, address)
                return Bearer(name, session.grants)
            raise NotAllowed("that is not the password that you have now")
        bearer = self._access.people.tokens.bearer(sent.get("token", "").strip(), Use.PASSWORD)
        if bearer is None:
            raise NotAllowed(
                "this link sets no password: it was used, or is too old",
                remedy="ask for another one, `farm people password`",
            )
        self._attempts.went_well("", address)
        found = self._access.people.one(bearer.person)
        return bearer if found is None else Bearer(found.name, found.grants)

    def _asks(
        self, request: Request, back: str, wrong: str = "", status: int = 200, headers: dict[str, str] | None = None
    ) -> Response:
        data = {"wrong": wrong, "back": back if is_way(back) else "/", "people": self._access.shared()}
        response = self._renderer.own_page(request, "sign_in.html.j2", "Sign in", data, status)
        response.headers.update(headers or {})
        return response

    def _asks_password(self, request: Request, wrong: str = "", token: str = "", status: int = 200) -> Response:
        session = self._access.session(request)
        has_one = session is not None and bool(session.token) and not token
        data = {"wrong": wrong, "shown": token, "has_one": has_one}
        return self._renderer.own_page(request, "password.html.j2", "Password", data, status)
