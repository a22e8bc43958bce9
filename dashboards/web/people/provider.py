"""A provider of OpenID Connect: the way to its log-in, and what it says of who comes back (OpenID Connect Core
1.0, code flow with PKCE by RFC 7636)."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import urlsplit

from authlib.integrations.requests_client import OAuth2Session, OAuthError
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from orchestrator.acts.access.sign_on import Claimed
from orchestrator.model.errors import NotAllowed, ServiceDown
from orchestrator.system.config import SignOn

log = logging.getLogger(__name__)
DESCRIPTION = "/.well-known/openid-configuration"
SCOPE = "openid email profile"
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint")
SIGNED_BY = [f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)]
"""Signatures by a key that the provider alone has: neither `none`, nor by the secret that we have, too."""
REPLY_S, WAITS_S, LEEWAY_S = 5.0, 0.1, 60
KNOWN_S, AGAIN_S = 3600.0, 10.0
"""The time for which a provider's description and keys are kept, and the least before they are asked for again."""
MOST_BYTES = 1 << 20
AT_ONCE = 8
"""Log-ins that wait for the provider at the same time: one that hangs takes no more of the pages' threads."""
LONGEST = 200
"""Characters of what a provider says that are shown."""


class Provider:
    """The provider that the farm's settings name. Threads may share it."""

    def __init__(self, of: SignOn) -> None:
        self.of, self._lock, self._turns = of, Lock(), BoundedSemaphore(AT_ONCE)
        self._known: tuple[float, dict[str, Any], KeySet] | None = None

    def begin(self, redirect: str) -> tuple[str, dict[str, str]]:
        """Return the address at which somebody logs in, and what is to be kept until they come back. Raises
        ServiceDown."""
        kept = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        with self._session(redirect) as session:
            way = self._described(session)[0]["authorization_endpoint"]
            url, _ = session.create_authorization_url(
                way, state=kept["state"], nonce=kept["nonce"], code_verifier=kept["verifier"]
            )
        return str(url), kept

    def claimed(self, kept: Mapping[str, str], query: Mapping[str, str], redirect: str) -> Claimed:
        """Return who came back with this query. Raises NotAllowed where it proves nobody, ServiceDown."""
        of = self.of
        state, issuer = query.get("state", ""), query.get("iss", of.issuer)
        if not hmac.compare_digest(state.encode(), kept["state"].encode()) or issuer != of.issuer:
            raise NotAllowed("this is not the answer to the log-in that was begun here")
        if "error" in query:
            raise NotAllowed(f"the provider {of.issuer} says: {_plain(query.get('error_description', query['error']))}")
        with self._session(redirect) as session:
            described, _ = self._described(session)
            token = session.fetch_token(
                described["token_endpoint"], grant_type="authorization_code", code=query.get("code", ""),
                code_verifier=kept["verifier"], timeout=REPLY_S, allow_redirects=False,
            )  # fmt: skip
            claims = self._proven(session, token, kept["nonce"])
            if of.name not in claims and "userinfo_endpoint" in described:
                more = self._json(session, described["userinfo_endpoint"], withhold_token=False)
                claims = {**(more if more.get("sub") == claims["sub"] else {}), **claims}
        return _claimed(of, claims)

    @contextmanager
    def _session(self, redirect: str) -> Iterator[Any]:
        """A client of the provider, whose errors are ours."""
        of = self.of
        if not self._turns.acquire(timeout=WAITS_S):
            raise ServiceDown(f"many wait for the provider {of.issuer}", remedy="try again in a moment")
        try:
            with OAuth2Session(
                of.client, of.secret(), scope=SCOPE, redirect_uri=redirect, code_challenge_method="S256",
                token_endpoint_auth_method="client_secret_basic" if of.secret_file else "none",
            ) as session:  # fmt: skip
                yield session
        except (OAuthError, JoseError) as e:
            log.warning("event=log_in_by_provider_refused error=%s", _plain(e))
            raise NotAllowed(
                f"what {of.issuer} answered proves nobody: {_plain(e)}", remedy="log in once more, from the first page"
            ) from e
        except (OSError, ValueError, KeyError, TypeError) as e:  # requests raises errors of OSError
            log.warning("event=provider_down error=%s", _plain(e))
            told = f"the provider {of.issuer} does not answer as one does"
            raise ServiceDown(told, remedy="try again; the log of the pages says what it answers") from e
        finally:
            self._turns.release()

    def _proven(self, session: Any, token: Mapping[str, Any], nonce: str) -> dict[str, Any]:
        """Return what an answer claims, once its signature, issuer, audience, times and nonce are checked. Raises
        JoseError."""
        of = self.of
        try:
            decoded = self._decoded(session, str(token.get("id_token", "")))
        except (InvalidKeyIdError, BadSignatureError):  # it may have changed its keys
            self._forget()
            decoded = self._decoded(session, str(token.get("id_token", "")))
        wanted = {"iss": {"essential": True, "value": of.issuer}, "aud": {"essential": True, "value": of.client}}
        shown = {"nonce": nonce, "client_id": of.client, "access_token": token.get("access_token")}
        claims = CodeIDToken(decoded.claims, decoded.header, wanted, shown)
        claims.validate(leeway=LEEWAY_S)
        return dict(claims)

    def _decoded(self, session: Any, text: str) -> jwt.Token:
        _, keys = self._described(session)
        return jwt.decode(text, keys, registry=JWSRegistry(algorithms=SIGNED_BY, strict_check_header=False))

    def _described(self, session: Any) -> tuple[dict[str, Any], KeySet]:
        """Return the provider's description of itself, and its keys; both are kept."""
        with self._lock:
            if self._known is None or time.monotonic() - self._known[0] > KNOWN_S:
                found = self._json(session, self.of.issuer.rstrip("/") + DESCRIPTION)
                if found["issuer"] != self.of.issuer:
                    raise ValueError(f"it calls itself {found['issuer']}")
                scheme = self.of.issuer.partition(":")[0]
                if plain := [way for way in ENDPOINTS if way in found and urlsplit(found[way]).scheme != scheme]:
                    raise ValueError(f"{plain[0]} is no {scheme}:// address")
                self._known = time.monotonic(), found, KeySet.import_key_set(self._json(session, found["jwks_uri"]))  # type: ignore[arg-type]
            return self._known[1:]

    def _forget(self) -> None:
        with self._lock:
            if self._known is not None and time.monotonic() - self._known[0] > AGAIN_S:
                self._known = None

    def _json(self, session: Any, url: str, *, withhold_token: bool = True) -> dict[str, Any]:
        with session.get(
            url, timeout=REPLY_S, stream=True, allow_redirects=False, withhold_token=withhold_token
        ) as reply:
            if reply.status_code != 200:
                raise ValueError(f"{url} answers {reply.status_code}")
            text = b""
            for piece in reply.iter_content(1 << 16):
                text += piece
                if len(text) > MOST_BYTES:
                    raise ValueError(f"{url} is larger than {MOST_BYTES} bytes")
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(f"{url} is no object of JSON")
        return found


def _claimed(of: SignOn, claims: Mapping[str, Any]) -> Claimed:
    """Return who is meant, by the settings. Raises NotAllowed."""
    name, email = claims.get(of.name), claims.get("email")
    if not isinstance(name, str) or not name:
        raise NotAllowed(f"the provider {of.issuer} does not tell your {of.name}", remedy="see `name` in FARM_OIDC")
    if (of.name == "email" or of.domains) and claims.get("email_verified") is not True:
        raise NotAllowed(
            f"the provider {of.issuer} has not verified your e-mail address", remedy="have it verified there"
        )
    if of.domains and str(email).rpartition("@")[2].lower() not in of.domains:
        raise NotAllowed(
            f"{_plain(email)} is of no domain that this farm lets in", remedy="log in with another account"
        )
    told = claims.get(of.groups_claim, [])
    groups = {each for each in (told if isinstance(told, list) else [told]) if isinstance(each, str)}
    mine = {here for there, here in of.groups.items() if there in groups}
    subject = f"{claims['iss']} {claims['sub']}"
    return Claimed(name, subject, frozenset(mine), frozenset(of.groups.values()) - mine, of.unknown)


def _plain(told: object) -> str:
    """Return what another program said, on one line, without what controls a terminal."""
    return "".join(each if each.isprintable() else " " for each in str(told)[:LONGEST]).strip(" :.")
