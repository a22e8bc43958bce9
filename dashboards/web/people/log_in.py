"""Log in and out: an owner by the farm's token, people by name and password, which they set by a link of one use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import ceil
from urllib.parse import quote

from pydantic import SecretStr
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dashboards.web import shown
from dashboards.web.access import Access, is_ours
from dashboards.web.forms import is_way, origin, refused, sent_form, way_back
from dashboards.web.renderer import Renderer
from orchestrator.acts import Actor, Door, Site, passwords
from orchestrator.ledger.people.tokens import Bearer
from orchestrator.model.errors import FarmError, NotAllowed
from orchestrator.model.people import Use

from .attempts import Attempts

log = logging.getLogger(__name__)
SAFE = ":/%#?=@[]!$&'()*+,"
"""Characters that an address has as they are."""
OWNER = ""
"""The name under which attempts at the farm's token count."""


class LogIn:
    """The ways to a session, and out of it."""

    def __init__(self, access: Access, site: Callable[[], Site], renderer: Renderer, way: str = "") -> None:
        """`way`: the name of the provider by which people may log in, too; empty: there is none."""
        self.access, self.site, self._renderer, self._way = access, site, renderer, way
        self.attempts = Attempts()

    async def page(self, request: Request) -> Response:
        return await run_in_threadpool(self.asks, request, request.query_params.get("back", "/"))

    async def enter(self, request: Request) -> Response:
        sent = await sent_form(request)
        if sent is None or not is_ours(request):
            return refused(request)
        return await run_in_threadpool(self._enter, request, sent)

    async def leave(self, request: Request) -> Response:
        sent = await sent_form(request)
        if sent is None or not self.access.may_act(request, sent.get("form_token", "")):
            return refused(request)
        session = self.access.session(request)
        if session is not None and session.token:
            await run_in_threadpool(self.access.people.tokens.end, session.token)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self.access.cookie)
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
        if wait_s := self.attempts.begin(counted, address):
            log.warning("event=sign_in_bounded origin=%s", address)
            return self.asked_too_often(request, way_back(sent), wait_s)
        try:
            known, password = self.access, sent.get("password", "")
            cookie = known.enter(sent["token"], name) if by_token else known.log_in(name, password)
        except FarmError as e:
            return self._renderer.refused(request, e)
        if cookie is None:
            log.warning("event=sign_in_refused origin=%s", address)
            text = "That is not the token of this farm." if by_token else "Nobody here has this name and password."
            return self.asks(request, way_back(sent), text, 403)
        self.attempts.went_well(counted, address)
        response = RedirectResponse(way_back(sent), 303)
        self.access.let_in(request, response, cookie)
        return response

    def _set(self, request: Request, sent: dict[str, str]) -> Response:
        """Set the password of whoever shows a token for it, or of a session whose person says the old one."""
        password, session = sent.get("password", ""), self.access.session(request)
        try:
            if password != sent.get("again", ""):
                raise NotAllowed("the two passwords are not the same", remedy="type the new one twice")
            person = self._person(request, sent)
            who = Actor(person.person, Door.PAGE, person.grants, origin(request))
            done = passwords.set_password(self.site(), who, person.person, SecretStr(password))
            cookie = self.access.log_in(person.person, password)
        except FarmError as e:
            text = ": ".join(filter(None, (str(e.args[0]), e.remedy)))
            return self._asks_password(request, f"{text[0].upper()}{text[1:]}.", sent.get("token", ""), 403)
        response = RedirectResponse("/" if session is None else "/me", 303)
        self.access.let_in(request, response, cookie or "")
        shown.tell(request, response, done.text, bad=False)
        return response

    def _person(self, request: Request, sent: dict[str, str]) -> Bearer:
        """Return the person whose password may be set. Raises FarmError."""
        session, address = self.access.session(request), origin(request)
        name = session.name if session is not None and session.token and not sent.get("token") else ""
        if wait_s := self.attempts.begin(name, address):
            raise NotAllowed(f"that was tried too often: wait for {ceil(wait_s)} s")
        if name and session is not None:
            may, old = self.access.may_act(request, sent.get("form_token", "")), sent.get("old", "")
            if may and self.access.people.passwords.fits(name, old):
                self.attempts.went_well(name, address)
                return Bearer(name, session.grants)
            raise NotAllowed("that is not the password that you have now")
        bearer = self.access.people.tokens.bearer(sent.get("token", "").strip(), Use.PASSWORD)
        if bearer is None:
            raise NotAllowed(
                "this link sets no password: it was used, or is too old",
                remedy="ask for another one, `farm people password`",
            )
        self.attempts.went_well("", address)
        found = self.access.people.one(bearer.person)
        return bearer if found is None else Bearer(found.name, found.grants)

    def asks(self, request: Request, back: str, wrong: str = "", status: int = 200) -> Response:
        """The page of all ways to log in."""
        data = {"wrong": wrong, "back": back if is_way(back) else "/", "people": self.access.shared(), "way": self._way}
        return self._renderer.own_page(request, "sign_in.html.j2", "Sign in", data, status)

    def asked_too_often(self, request: Request, back: str, wait_s: float) -> Response:
        """The same for somebody who has to wait."""
        response = self.asks(request, back, f"That was tried too often: wait for {ceil(wait_s)} s.", 429)
        response.headers["Retry-After"] = str(ceil(wait_s))
        return response

    def shows_way(self, request: Request, back: str) -> Response:
        """A page that leads on by itself. A browser that another site sent here shows no session to what it is sent on
        to (`SameSite=Strict`); to what a page of ours leads to, it does."""
        response = self._renderer.own_page(request, "entered.html.j2", "Logged in", {"back": back}, 200)
        response.headers["Refresh"] = f"0; url={quote(back, safe=SAFE)}"
        return response

    def _asks_password(self, request: Request, wrong: str = "", token: str = "", status: int = 200) -> Response:
        session = self.access.session(request)
        has_one = session is not None and bool(session.token) and not token
        data = {"wrong": wrong, "shown": token, "has_one": has_one}
        return self._renderer.own_page(request, "password.html.j2", "Password", data, status)
