"""The rights to look and to act: the farm's token, people's sessions, tokens of forms, names by which we are called."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from orchestrator.ledger.people.tokens import PREFIX
from orchestrator.model.errors import FarmError, ServiceDown
from orchestrator.model.people import Role, Use
from orchestrator.model.rights import WHOLE, Grants, Place, Right
from orchestrator.system.private_files import make_private

if TYPE_CHECKING:
    from orchestrator.ledger.people.people import People

TOKEN_FILE = "pages.token"  # noqa: S105  (a name)
LASTS_S = 12 * 3600.0
"""A session; then its person shows the token again."""
LONGEST_NAME = 60
VISITOR = "farm_visitor"
"""The key in a request's scope."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def token_of(state: Path) -> str:
    """The farm's token, made where there is none; its file is for the owner's eyes only."""
    make_private(state)
    path = state / TOKEN_FILE
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
    except FileExistsError:
        pass
    return path.read_text().strip()


@dataclass(frozen=True)
class Session:
    """Somebody who has shown the farm's token, or has logged in."""

    name: str
    """The name that an owner gives themself, or that of a person of the farm: holds bear it."""
    form_token: str
    """The token that every form of this session sends along."""
    grants: Grants = WHOLE
    token: str = ""
    """The id of its token in the ledger; empty: it is an owner's, and signed."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who looks at the pages."""

    grants: Grants
    session: Session | None = None

    @property
    def name(self) -> str:
        """Return their name; empty: they have not said who they are."""
        return self.session.name if self.session else ""

    @property
    def key(self) -> str:
        """Return what tells them from others to whom a page looks another way."""
        return f"{self.session.form_token if self.session else ''}:{self.grants}"

    def may(self, needs: Right, places: Iterable[Place] = ()) -> bool:
        return not needs.why_not(self.name, self.grants, places)


NOBODY, ANYBODY = Visitor(Grants()), Visitor(WHOLE)
"""Somebody who has not logged in: on a farm of several people, and on a farm of one, open to its whole machine."""


class Access:
    """The visitors and their rights. On a farm of one person, reading is free where the pages are on loopback, and
    acting takes a session; where there are people, all takes one."""

    def __init__(
        self,
        token: str,
        *,
        names: Collection[str] = LOOPBACK,
        private: bool = False,
        secure: bool = False,
        shared: Callable[[], bool] = lambda: False,
        shared_at_once: Callable[[], bool | None] = lambda: None,
        people: Callable[[], People] | None = None,
    ) -> None:
        """`names`: hosts that a request may name. `private`: looking takes a session, too. `secure`: by HTTPS.
        `shared`: whether there are people beside the owner; `shared_at_once`: the same without waiting, or None.
        `people`: raises FarmError where the ledger is away."""
        self._key = token.encode()
        self._names, self.private, self.secure = frozenset(names), private, secure
        self.shared, self._shared_at_once, self._people = shared, shared_at_once, people
        self.cookie = "farm_" + self._signed("cookie")[:12]
        """Its name: browsers keep one jar for all ports of a machine."""

    @property
    def people(self) -> People:
        """Raises FarmError where the ledger is away, or the pages have none."""
        if self._people is None:
            raise ServiceDown("these pages know no people")
        return self._people()

    def is_meant(self, host: str) -> bool:
        """Return whether a request names us: another name is a page of somebody else's that has our address."""
        return host.rpartition(":")[0] in self._names if host.rpartition(":")[2].isdigit() else host in self._names

    def enter(self, token: str, name: str) -> str | None:
        """The cookie of an owner's new session; None where the token is wrong."""
        if not hmac.compare_digest(token.strip().encode(), self._key):
            return None
        said = " ".join(name.split())[:LONGEST_NAME] or "web"
        return self.sealed("session", LASTS_S, name=said, salt=secrets.token_hex(8))

    def log_in(self, name: str, password: str) -> str | None:
        """The cookie of a person's new session; None where name or password is wrong. Raises FarmError."""
        if not self.people.passwords.fits(name, password):
            return None
        return self.begin(name)

    def begin(self, name: str) -> str:
        """Return the cookie of a new session of a person who has proven who they are. Raises FarmError."""
        ends_at = time.time() + LASTS_S
        return self.people.tokens.make(name, Role.ADMINISTER, "", "logged in on the pages", ends_at, Use.SESSION)[1]

    def let_in(self, request: Request, response: Response, cookie: str) -> None:
        """Give a browser the cookie of a session."""
        self.give(request, response, self.cookie, cookie, LASTS_S)

    def give(
        self, request: Request, response: Response, name: str, value: str, lasts_s: float, path: str = "/", *,
        strict: bool = True,
    ) -> None:  # fmt: skip
        """Give a browser a cookie that no script reads. `strict`: what others' pages send it to has it not."""
        secure = self.secure or request.url.scheme == "https"
        response.set_cookie(
            name, value, max_age=int(lasts_s), path=path, httponly=True, secure=secure,
            samesite="strict" if strict else "lax",
        )  # fmt: skip

    def sealed(self, use: str, lasts_s: float, **said: str) -> str:
        """Return what was said as a text that nobody else can make, for one use."""
        body = base64.urlsafe_b64encode(json.dumps({**said, "until": time.time() + lasts_s}).encode()).decode()
        return f"{body}.{self._signed(use, body)}"

    def opened(self, use: str, shown: str) -> dict[str, str] | None:
        """Return what such a text says; None where it is over, or we did not make it for this use."""
        body, _, signature = shown.partition(".")
        if not body or not hmac.compare_digest(signature.encode(), self._signed(use, body).encode()):
            return None
        try:
            said = json.loads(base64.urlsafe_b64decode(body))
        except (ValueError, binascii.Error):
            return None
        return said if said["until"] > time.time() else None

    def visitor(self, request: Request) -> Visitor:
        """Return who sent a request, as it was found when it came; asks the ledger once."""
        if VISITOR not in request.scope:
            request.scope[VISITOR] = self.visitor_now(request)
        found: Visitor = request.scope[VISITOR]
        return found

    def visitor_now(self, request: Request) -> Visitor:
        """The same as the ledger says now, which a stream that lasts asks again."""
        session = self._session(request)
        return _visitor(session, session is None and (self.private or self.shared()))

    def visitor_at_once(self, request: Request) -> Visitor | None:
        """The same for callers that must not wait; None: they have to ask `visitor` elsewhere."""
        shown = request.cookies.get(self.cookie, "")
        if shown.startswith(PREFIX):
            return None
        session = self._owners(shown)
        closed = session is None and (self.private or self._shared_at_once())
        if closed is None:
            return None
        found = request.scope[VISITOR] = _visitor(session, closed)
        return found

    def session(self, request: Request) -> Session | None:
        """Return a request's session; None where it shows none, an old one, or one that we did not make."""
        return self.visitor(request).session

    def _session(self, request: Request) -> Session | None:
        shown = request.cookies.get(self.cookie, "")
        if not shown.startswith(PREFIX):
            return self._owners(shown)
        with suppress(FarmError):
            bearer = self.people.tokens.bearer(shown, Use.SESSION)
            if bearer is not None:
                return Session(bearer.person, self._signed("form", shown), bearer.grants, bearer.token)
        return None

    def _owners(self, shown: str) -> Session | None:
        said = self.opened("session", shown)
        return Session(said["name"], self._signed("form", shown.partition(".")[0])) if said else None

    def may_act(self, request: Request, form_token: str) -> bool:
        """Return whether a form of ours was sent by somebody with a session."""
        session = self.session(request)
        return (
            session is not None
            and is_ours(request)
            and hmac.compare_digest(form_token.encode(), session.form_token.encode())
        )

    def _signed(self, *words: str) -> str:
        return hmac.new(self._key, ":".join(words).encode(), hashlib.sha256).hexdigest()


def _visitor(session: Session | None, is_closed: bool) -> Visitor:
    if session is not None:
        return Visitor(session.grants, session)
    return NOBODY if is_closed else ANYBODY


def is_ours(request: Request) -> bool:
    """Return whether a page of ours sent this, as far as the browser says where it comes from."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return (origin is None or origin == own) and site == "same-origin"
