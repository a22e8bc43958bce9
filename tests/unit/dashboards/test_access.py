"""The right to act: sessions are signed and end, forms are ours, and we answer to our own names alone."""

from __future__ import annotations

import base64
import json
import random
import stat
from pathlib import Path

import pytest
from starlette.requests import Request

from dashboards.web import access
from dashboards.web.access import Access, token_of
from orchestrator.ledger import Ledger
from orchestrator.model.people import Kind, Role, Use

TOKEN = "t" * 43


def request(cookie: str = "", **headers: str) -> Request:
    pairs = {"host": "127.0.0.1:8420", "cookie": cookie, **{k.replace("_", "-"): v for k, v in headers.items()}}
    raw = [(name.encode(), value.encode()) for name, value in pairs.items() if value]
    return Request(
        {
            "type": "http",
            "method": "POST",
            "path": "/do/cancel",
            "query_string": b"",
            "headers": raw,
            "scheme": "http",
            "server": ("127.0.0.1", 8420),
        }
    )


def entered(known: Access, name: str = "anna") -> str:
    cookie = known.enter(TOKEN, name)
    assert cookie is not None
    return f"{known.cookie}={cookie}"


def test_the_token_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    first = token_of(tmp_path / "state")
    assert len(first) >= 43 and token_of(tmp_path / "state") == first
    assert stat.S_IMODE((tmp_path / "state" / access.TOKEN_FILE).stat().st_mode) == 0o600


def test_a_session_takes_the_token_and_bears_a_name() -> None:
    known = Access(TOKEN)
    assert known.enter("guess", "anna") is None and known.enter("", "anna") is None
    session = known.session(request(entered(known, " anna \n b ")))
    assert session is not None and session.name == "anna b"


def test_a_session_of_another_token_or_with_another_name_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    known, cookie = Access(TOKEN), entered(Access(TOKEN))
    assert Access("other").session(request(cookie.replace(known.cookie, Access("other").cookie))) is None
    name, _, value = cookie.partition("=")
    body, _, signature = value.partition(".")
    said = {**json.loads(base64.urlsafe_b64decode(body)), "name": "root"}
    forged = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
    assert known.session(request(f"{name}={forged}.{signature}")) is None
    assert known.session(request(f"{name}={body}.")) is None and known.session(request()) is None


def test_a_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Access(TOKEN)
    monkeypatch.setattr(access, "LASTS_S", -1.0)
    assert known.session(request(entered(known))) is None


def test_only_a_form_of_this_session_from_our_own_page_acts() -> None:
    known = Access(TOKEN)
    cookie, other = entered(known), entered(known)
    session, another = known.session(request(cookie)), known.session(request(other))
    assert session is not None and another is not None
    assert known.may_act(request(cookie), session.form_token)
    assert known.may_act(
        request(cookie, origin="http://127.0.0.1:8420", sec_fetch_site="same-origin"), session.form_token
    )
    assert not known.may_act(request(cookie), another.form_token)
    assert not known.may_act(request(cookie), "")
    assert not known.may_act(request(), session.form_token)
    assert not known.may_act(request(cookie, origin="http://evil.example"), session.form_token)
    assert not known.may_act(request(cookie, origin="http://127.0.0.1:9999"), session.form_token)
    assert not known.may_act(request(cookie, sec_fetch_site="cross-site"), session.form_token)


@pytest.mark.parametrize(
    ("host", "meant"),
    [
        ("127.0.0.1:8420", True), ("localhost", True), ("[::1]:80", True), ("evil.example:8420", False), ("", False),
        ("127.0.0.1.evil.example", False), ("evil.example#127.0.0.1:80", False),
    ],
)  # fmt: skip
def test_another_name_for_this_address_is_not_ours(host: str, meant: bool) -> None:
    """A page of somebody else's whose name leads to 127.0.0.1 reads nothing."""
    assert Access(TOKEN).is_meant(host) is meant


def test_who_comes_is_told_at_once_as_the_ledger_says_it(tmp_path: Path, seed: int) -> None:
    """Whoever must not wait is told the same as who asks the ledger, also while somebody writes, or nothing."""
    chance, url, told = random.Random(seed), f"sqlite:///{tmp_path / 'ledger.sqlite'}", []
    with Ledger(url) as other, Ledger(url) as own:
        people, mine = other.people, own.people
        known = Access(
            TOKEN, shared=mine.are_let_in, shared_at_once=mine.are_let_in_at_once, people=lambda: mine
        )  # fmt: skip
        people.add("anna", Kind.PERSON)
        session = f"{known.cookie}={people.tokens.make('anna', Role.VIEW, '', '', None, Use.SESSION)[1]}"
        for _ in range(24):
            cookie = chance.choice(("", "", entered(known), session, f"{known.cookie}=x.y"))
            before = known.visitor(request(cookie))
            with other.together():
                chance.choice((lambda: people.end("anna"), lambda: people.add("anna", Kind.PERSON)))()
                told += [(cookie, before, known.visitor_at_once(request(cookie)))]
            told += [(cookie, known.visitor(request(cookie)), known.visitor_at_once(request(cookie)))]
    assert all(now == (None if cookie == session else asked) for cookie, asked, now in told)
    found = [asked for _, asked, _ in told]
    assert access.NOBODY in found and access.ANYBODY in found
