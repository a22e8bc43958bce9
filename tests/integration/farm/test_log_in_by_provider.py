"""Log-in by OpenID Connect, with a provider that nobody here wrote: who is let in, and which answers prove nobody."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import warnings
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import flask
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from werkzeug.serving import make_server

from dashboards.web import Pages, make_app
from dashboards.web.access import Access
from dashboards.web.people.attempts import BY_NAME
from farm.web.pages import Listening, config_of
from orchestrator.acts import Site
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ServiceDown
from orchestrator.model.people import Kind, Role, Use
from orchestrator.system.config import Settings, SignOn

from .test_http_api import served

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:authlib")
Reply = tuple[int, http.client.HTTPMessage, str]
Claims = dict[str, Any]
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "other"})
FAULTS: dict[str, tuple[str, Callable[[Claims], object]]] = {
    "nonce": ("nonce", lambda claims: claims.update(nonce="another")),
    "no nonce": ("nonce", lambda claims: claims.pop("nonce")),
    "issuer": ("iss", lambda claims: claims.update(iss="http://localhost:1")),
    "audience": ("aud", lambda claims: claims.update(aud="another")),
    "audiences": ("azp", lambda claims: claims.update(aud=["farm", "another"], azp="another")),
    "expired": ("expired", lambda claims: claims.update(exp=int(time.time()) - 3600)),
    "no end": ("exp", lambda claims: claims.pop("exp")),
    "to come": ("future", lambda claims: claims.update(iat=int(time.time()) + 3600)),
    "nobody": ("sub", lambda claims: claims.pop("sub")),
}
"""Faults of what a token claims, each with a word of the refusal; the token is signed as it should be."""
FORGERIES = {
    "alg none": "not allowed",
    "our secret": "not allowed",
    "other key": "bad_signature",
    "cut": "bad_signature",
    "no token": "decode_error",
    "html": "does not answer as one does",
}


class Somebodys:
    """The provider, whose answers may be made worse."""

    def __init__(self) -> None:
        with warnings.catch_warnings(record=True):  # its own library has deprecated what it uses
            import oidc_provider_mock as provider
        verified = {"email_verified": True}
        claims: list[Claims] = [
            {"email": "anna@lab", "groups": ["Cameras", "all"], **verified},
            {"email": "berta@lab", "groups": ["all"], **verified},
            {"email": "anna@lab", **verified},
            {"email": "carla@lab", "email_verified": False},
            {"email": "dora@elsewhere", **verified},
            {"groups": []},
            {"email": "ci@lab", **verified},
        ]
        users = [provider.User(sub=str(number), claims=each) for number, each in enumerate(claims, 1)]
        app = provider.app(user_claims=users, require_nonce=True)
        app.after_request(self._worse)
        self.server = make_server("127.0.0.1", 0, app, threaded=True)
        self.issuer, self.fault, self.asked = f"http://127.0.0.1:{self.server.server_port}", "", dict[str, str]()

    def _worse(self, response: flask.Response) -> flask.Response:
        if flask.request.path != "/oauth2/token":
            return response
        self.asked = dict(flask.request.form)
        if not self.fault or response.status_code != 200:
            return response
        told, key = response.get_json(), flask.g.oidc_provider_mock_storage.jwk
        mine = RSAKey.import_key(key.as_dict(is_private=True))
        claims = jwt.decode(told["id_token"], mine).claims
        if self.fault in FAULTS:
            FAULTS[self.fault][1](claims)
            told["id_token"] = jwt.encode({"alg": "RS256", "kid": mine.kid}, claims, mine)
        elif self.fault == "alg none":
            told["id_token"] = ".".join([*(_encoded(each) for each in ({"alg": "none"}, claims)), ""])
        elif self.fault == "other key":
            told["id_token"] = jwt.encode({"alg": "RS256", "kid": mine.kid}, claims, OTHER_KEY)
        elif self.fault == "our secret":
            told["id_token"] = jwt.encode(
                {"alg": "HS256"}, claims, OctKey.import_key(b"a secret of the farm's own " * 2)
            )
        elif self.fault == "cut":
            told["id_token"] = told["id_token"][:-20]
        elif self.fault == "no token":
            del told["id_token"]
        response.set_data("<html>" if self.fault == "html" else json.dumps(told))
        return response


def _encoded(told: Claims) -> str:
    return urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()


@pytest.fixture(scope="module")
def provider() -> Iterator[Somebodys]:
    found = Somebodys()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.05,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


class Browser:
    """Somebody's browser: it keeps the cookies of the farm, and follows it to the provider and back."""

    def __init__(self, port: int) -> None:
        self.port, self.cookies, self.headers = port, dict[str, str](), dict[str, str]()

    def get(self, path: str, port: int = 0, form: dict[str, str] | None = None) -> Reply:
        """Ask the farm, or with `port` the provider."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=30)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {} if port else {"Cookie": cookie, **self.headers}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            connection.request("POST" if form else "GET", path, urlencode(form) if form else None, headers)
            reply = connection.getresponse()
            for cookie in reply.headers.get_all("Set-Cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def way_back(self, subject: str, back: str = "/me", **answer: str) -> str:
        """Go to the provider, say who one is, and return the way back to the farm."""
        status, headers, _ = self.get(f"/sign-in/provider?back={quote(back, safe='')}")
        assert status == 303, headers
        there = urlsplit(headers["Location"])
        self.sent = {name: each[0] for name, each in parse_qs(there.query).items()}
        status, headers, text = self.get(
            f"{there.path}?{there.query}", there.port or 0, {"sub": subject, "action": "allow", **answer}
        )
        assert status == 302, text
        found = urlsplit(headers["Location"])
        assert found.path == "/sign-in/provider/back" and found.port == self.port
        return f"{found.path}?{found.query}"

    def log_in(self, subject: str, back: str = "/me") -> Reply:
        return self.get(self.way_back(subject, back))


@contextmanager
def farm(folder: Path, provider: Somebodys, proxies: str = "", **given: Any) -> Iterator[tuple[Browser, Ledger]]:
    """The pages of a farm that knows Anna, its group of cameras and a program, at the port of a browser."""
    (folder / "secret").write_text("a secret of the farm's own " * 2)
    of = SignOn.model_validate({"issuer": provider.issuer, "client": "farm", "secret_file": folder / "secret", **given})

    def away() -> Any:
        raise ServiceDown("no farm runs")

    with Ledger(f"sqlite:///{folder / 'ledger.sqlite'}") as ledger:
        if ledger.people.one("anna@lab") is None:
            for name, kind in (("anna@lab", Kind.PERSON), ("ci@lab", Kind.SERVICE), ("cameras", Kind.GROUP)):
                ledger.people.add(name, kind)
            ledger.people.grant("cameras", Role.OPERATE, "common")
        site = Site(Settings(state=folder), ledger, away)
        access = Access("token", private=True, people=lambda: ledger.people)
        app = make_app(Pages(lambda: ledger, away, access, lambda: site, folder, str, of))
        with served(config_of(app, Listening(), proxies)) as port:
            yield Browser(port), ledger


def test_who_comes_by_a_provider_is_who_was_added_and_of_its_groups(tmp_path: Path, provider: Somebodys) -> None:
    provider.fault = ""
    with farm(tmp_path, provider, groups={"Cameras": "cameras", "Screens": "none"}) as (browser, ledger):
        assert "Log in with 127.0.0.1" in browser.get("/sign-in")[2] and browser.get("/me")[0] == 303
        assert browser.get("/sign-in/provider/back?code=x&state=y")[0] == 403, "it was not begun"
        status, headers, text = browser.log_in("1", "/me?x=1")
        assert (status, headers["Refresh"]) == (200, "0; url=/me?x=1") and 'href="/me?x=1"' in text
        challenge = urlsafe_b64encode(sha256(provider.asked["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        assert (browser.sent["code_challenge_method"], browser.sent["code_challenge"]) == ("S256", challenge)
        cookie = next(each for each in headers.get_all("Set-Cookie") if "farm_provider" not in each)
        assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
        page = browser.get("/me")[2]
        assert "anna@lab" in page and "operate" in page and "cameras" in page
        shown = next(value for name, value in browser.cookies.items() if value.startswith("farm_"))
        bearer = ledger.people.tokens.bearer(shown, Use.SESSION)
        assert bearer is not None and bearer.grants.projects == {"common": Role.OPERATE}
        (row,) = ledger.audit.newest(9)
        assert (row.who, row.act, row.said) == ("anna@lab", "sign on", "anna@lab is who the provider says, of cameras")
        for subject, why in (("2", "berta"), ("3", "nother account"), ("4", "verified"), ("6", "email"), ("7", "ci@")):
            status, _, text = Browser(browser.port).log_in(subject)
            assert status == 403 and why in text, (subject, text)
        assert Browser(browser.port).log_in("1", "/queue?\N{SNOWMAN};x")[1]["Refresh"] == "0; url=/queue?%E2%98%83%3Bx"
        for back in ("//elsewhere", "https://elsewhere", "/\\elsewhere", "/" + "x" * 5000):
            assert Browser(browser.port).log_in("1", back)[1]["Refresh"] == "0; url=/"
        way = Browser(browser.port).way_back("1", action="deny")
        assert "error=access_denied" in way and Browser(browser.port).get(way)[0] == 403
        ledger.people.end("anna@lab")
        assert Browser(browser.port).log_in("1")[0] == 403 and browser.get("/me")[0] == 303


def test_unknown_people_come_in_where_the_settings_say_so(tmp_path: Path, provider: Somebodys) -> None:
    provider.fault = ""
    with farm(tmp_path, provider, unknown=True, domains=["lab"], groups={"all": "cameras"}) as (browser, ledger):
        assert browser.log_in("2")[0] == 200 and ledger.people.one("berta@lab").groups == ("cameras",)  # type: ignore[union-attr]
        assert "no domain" in Browser(browser.port).log_in("5")[2]
        ledger.people.end("berta@lab")
        assert Browser(browser.port).log_in("2")[0] == 403, "who was removed comes not back by themself"
    with farm(tmp_path, provider, groups={"none there": "cameras"}) as (browser, ledger):
        ledger.people.groups.join("cameras", ["anna@lab"])
        assert browser.log_in("1")[0] == 200 and ledger.people.one("anna@lab").groups == ()  # type: ignore[union-attr]


def test_an_answer_that_proves_nobody_lets_nobody_in(tmp_path: Path, provider: Somebodys, seed: int) -> None:
    """Every fault, in an order that is drawn, each in a browser of its own; then a log-in that is well."""
    chance, words = random.Random(seed), {name: word for name, (word, _) in FAULTS.items()} | FORGERIES
    with farm(tmp_path, provider) as (browser, _):
        for number, fault in enumerate(chance.sample([*words], len(words))):
            attempt, provider.fault = Browser(browser.port), fault
            status, _, text = attempt.log_in("1")
            assert status == (503 if fault == "html" else 403) and words[fault] in text, (fault, text)
            assert attempt.get("/me")[0] == 303, fault
            if number % (BY_NAME.most // 2) == 0:  # so that nobody has to wait
                provider.fault = ""
                assert Browser(browser.port).log_in("1")[0] == 200, fault
        provider.fault = ""
        first, other = Browser(browser.port), Browser(browser.port)
        way, stranger = first.way_back("1"), other.way_back("1")
        assert first.get(stranger)[0] == 403 and first.get(way)[0] == 403, (
            "another's way back, and then nothing is begun"
        )
        way = first.way_back("1")
        kept = dict(first.cookies)
        assert first.get(way)[0] == 200
        replayed = Browser(browser.port)
        replayed.cookies = kept
        assert replayed.get(way)[0] == 403, "a code counts once"
        assert [Browser(browser.port).get(way)[0] for _ in range(BY_NAME.most + 1)][-1] == 429


@pytest.mark.parametrize("issuer", ["http://id.lab", "id.lab", "https://", "https://id.lab/?x", "ftp://id.lab"])
def test_an_address_that_is_not_safe_is_no_provider(issuer: str) -> None:
    with pytest.raises(ValueError, match="https://"):
        SignOn(issuer=issuer, client="farm")


def test_a_provider_that_is_away_or_another_is_said(tmp_path: Path, provider: Somebodys) -> None:
    for issuer in ("http://127.0.0.1:9", f"{provider.issuer}/"):
        with farm(tmp_path, provider, issuer=issuer) as (browser, _):
            status, _, text = browser.get("/sign-in/provider")
            assert status == 503 and "does not answer as one does" in text


@pytest.mark.parametrize("trusted", [True, False])
def test_a_proxy_is_believed_where_the_settings_name_it(
    trusted: bool, tmp_path: Path, provider: Somebodys, seed: int
) -> None:
    """A stranger's word of who asks, and how, is not believed; nor is a client's to a proxy that is."""
    chance, provider.fault = random.Random(f"{seed}:{trusted}"), ""
    proxies = chance.choice(["127.0.0.1", "10.0.0.0/8, 127.0.0.0/8"] if trusted else ["", "10.0.0.0/8", "127.0.0.2"])
    with farm(tmp_path, provider, proxies) as (browser, ledger):
        client = f"203.0.113.{chance.randrange(256)}"
        browser.headers = {"X-Forwarded-For": f"198.51.100.7, {client}", "X-Forwarded-Proto": "https"}
        status, headers, _ = browser.log_in("1")
        assert status == 200 and browser.sent["redirect_uri"].startswith("https:" if trusted else "http:")
        assert [each.origin for each in ledger.audit.newest(9)] == [client if trusted else "127.0.0.1"]
        cookies = [each for each in headers.get_all("Set-Cookie") if not each.startswith("farm_provider=")]
        assert ["secure" in each.lower() for each in cookies] == [trusted]
