"""The rights to look and to act: the farm's token, signed sessions, tokens of forms, names by which we are called."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request

from orchestrator.system.private_files import make_private

TOKEN_FILE = "pages.token"  # noqa: S105  (a name)
LASTS_S = 12 * 3600.0
"""A session; then its person shows the token again."""
LONGEST_NAME = 60
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
    """Somebody who has shown the token."""

    name: str
    """The name that they give themselves: holds bear it."""
    form_token: str
    """The token that every form of this session sends along."""


class Access:
    """Reading is free where the pages are on loopback; acting takes a session."""

    def __init__(
        self, token: str, *, names: Collection[str] = LOOPBACK, private: bool = False, secure: bool = False
    ) -> None:
        """`names`: hosts that a request may name. `private`: looking takes a session, too. `secure`: by HTTPS."""
        self._key = token.encode()
        self._names, self.private, self.secure = frozenset(names), private, secure
        self.cookie = "farm_" + self._signed("cookie")[:12]
        """Its name: browsers keep one jar for all ports of a machine."""

    def is_meant(self, host: str) -> bool:
        """Return whether a request names us: another name is a page of somebody else's that has our address."""
        return host.rpartition(":")[0] in self._names if host.rpartition(":")[2].isdigit() else host in self._names

    def enter(self, token: str, name: str) -> str | None:
        """The cookie of a new session; None where the token is wrong."""
        if not hmac.compare_digest(token.strip().encode(), self._key):
            return None
        said = {"name": " ".join(name.split())[:LONGEST_NAME] or "web", "until": time.time() + LASTS_S}
        body = base64.urlsafe_b64encode(json.dumps({**said, "nonce": secrets.token_hex(8)}).encode()).decode()
        return f"{body}.{self._signed('session', body)}"

    def session(self, request: Request) -> Session | None:
        """Return a request's session; None where it shows none, an old one, or one that we did not sign."""
        body, _, signature = request.cookies.get(self.cookie, "").partition(".")
        if not body or not hmac.compare_digest(signature.encode(), self._signed("session", body).encode()):
            return None
        try:
            said = json.loads(base64.urlsafe_b64decode(body))
        except (ValueError, binascii.Error):
            return None
        return Session(said["name"], self._signed("form", body)) if said["until"] > time.time() else None

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


def is_ours(request: Request) -> bool:
    """Return whether a page of ours sent this, as far as the browser says where it comes from."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    return (origin is None or origin == own) and site == "same-origin"
