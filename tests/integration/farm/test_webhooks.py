"""Webhooks over a real server: each end is told once, signed, tried again where it was not taken, and given up."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from farm.parts.part import free_port
from farm.tasks.webhooks import tell_webhooks
from orchestrator.ledger import Ledger
from orchestrator.ledger.people import webhooks
from tests.unit.orchestrator import make


class Taker(BaseHTTPRequestHandler):
    """Somebody's server: keeps what comes, and answers as it is told to."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.came.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        answers = self.server.answers  # type: ignore[attr-defined]
        self.send_response(answers.pop(0) if answers else 204)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def taker() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Taker) as server:
        server.came, server.answers = [], []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/ledger.sqlite") as opened:
        opened.people.add_project("vision", "")
        yield opened


def submitted(ledger: Ledger, name: str, project: str, *, over: bool) -> None:
    ledger.submit(name, make.many(1, name=name), [make.job(name)], by="me", project=project)
    if over:
        ledger.cancel(name)


def test_each_end_is_told_once_and_signed(taker: HTTPServer, ledger: Ledger, seed: int) -> None:
    """Whatever ends in whatever order: of all projects and nights, or of one; nothing that was over before."""
    chance, came = random.Random(seed), taker.came  # type: ignore[attr-defined]
    url = f"http://127.0.0.1:{taker.server_port}"
    names = {f"e-{number}": chance.choice(["vision", "common"]) for number in range(9)}
    before = dict([*names.items()][:3])
    for number, (name, project) in enumerate(before.items()):
        submitted(ledger, name, project, over=number != 1)
    every, own = (
        ledger.people.webhooks.add(f"{url}/{way}?a=1", of, "me") for way, of in (("all", ""), ("own", "vision"))
    )
    late = ["e-1", *[*names][3:]]
    for name in late[1:]:
        submitted(ledger, name, names[name], over=False)
    chance.shuffle(late)
    for name in late:
        ledger.cancel(name)
        if chance.random() < 0.5:
            tell_webhooks(ledger, "http://farm/", here=True)
    ledger.nights.begin("night-1", "suite", 4e9, b"{}", over=True)
    for _ in range(6):
        tell_webhooks(ledger, "http://farm/", here=True)
    told = [(path, json.loads(body)) for path, _, body in came]
    assert sorted(said["id"] for path, said in told if path == "/all?a=1") == sorted([*late, "night-1"])
    assert sorted(said["id"] for path, said in told if path == "/own?a=1") == [
        name for name in sorted(late) if names[name] == "vision"
    ]
    for path, headers, body in came:
        at, signed = (each.partition("=")[2] for each in headers["Farm-Signature"].split(","))
        key = every[1] if path.startswith("/all") else own[1]
        assert signed == hmac.new(key.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
        said = json.loads(body)
        assert headers["Farm-Delivery"].endswith(said["id"]) and said["address"].startswith("http://farm/")
        assert said["event"] == "night.ended" or (said["counts"], said["project"]) == (
            {"cancelled": 1},
            names[said["id"]],
        )


def test_what_is_not_taken_is_tried_again_and_given_up(
    taker: HTTPServer, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    came, answers = taker.came, taker.answers  # type: ignore[attr-defined]
    hooks, now = ledger.people.webhooks, [webhooks.time.time()]
    monkeypatch.setattr(webhooks.time, "time", lambda: now[0])
    good, _ = hooks.add(f"http://127.0.0.1:{taker.server_port}/", "", "me")
    away, _ = hooks.add(f"http://127.0.0.1:{free_port()}/", "", "me")
    submitted(ledger, "e-1", "common", over=True)
    answers += [302, 500]
    waits = list[float]()
    for _ in range(webhooks.MOST_TRIES + 3):
        tell_webhooks(ledger, "", here=True)
        (soon, *_) = [*sorted(each for each in _next(ledger)), None]
        if soon is None:
            break
        waits.append(soon - now[0])
        now[0] = soon
    assert len(came) == 3 and {path for path, _, _ in came} == {"/"}, "no redirection is followed"
    assert all(0.0 < each <= webhooks.LONGEST_S for each in waits) and sum(waits) > 3600.0
    found = {each.id: each for each in hooks.every()}
    assert found[good].error == "" and "cannot be told" in found[away].error and _next(ledger) == []
    submitted(ledger, "e-2", "common", over=True)
    hooks.end(good)
    tell_webhooks(ledger, "", here=True)
    assert len(came) == 3 and hooks.one(away) is not None, "who was removed is told nothing"


def test_no_name_makes_the_farm_call_its_own_machine_or_the_link(taker: HTTPServer, ledger: Ledger, seed: int) -> None:
    chance, port = random.Random(seed), taker.server_port
    own, v4 = ipaddress.IPv4Address(2130706432 + chance.randrange(1, 1 << 24)), ipaddress.IPv4Address("127.0.0.1")
    link = ipaddress.IPv4Address("169.254.0.0") + chance.randrange(1, 1 << 16)
    hosts = ["localhost", str(own), str(int(own)), "[::1]", f"[::ffff:{own}]", "0.0.0.0", "[::]", str(link)]
    hosts += [f"[::ffff:{link}]", "[ff02::1]", "[fd00:ec2::254]", f"[64:ff9b::{v4}]", f"[2002:{0x7F00:x}:{1:x}::]"]
    for host in hosts:
        ledger.people.webhooks.add(f"http://{host}:{port}/", "", "me")
    submitted(ledger, "e-1", "common", over=True)
    for _ in range(2):
        tell_webhooks(ledger, "")
    found = [(each.url, each.error) for each in ledger.people.webhooks.every()]
    assert taker.came == [] and len(found) == len(hosts)  # type: ignore[attr-defined]
    assert all("this machine itself" in error or "webhooks are not sent there" in error for _, error in found), found


def _next(ledger: Ledger) -> list[float]:
    with ledger._database.read() as connection:
        wanted = webhooks.select(webhooks.DELIVERIES.c.next_at).where(webhooks.DELIVERIES.c.next_at.is_not(None))
        return [float(each) for each in connection.scalars(wanted)]
