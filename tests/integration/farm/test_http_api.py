"""The farm's API over a real server: exactly the table of rights, and what it bounds, keeps and refuses."""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
import os
import random
import re
import socket
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path, PosixPath
from typing import Any
from urllib.request import urlopen

import pytest
import uvicorn
from onnx import TensorProto, helper

from dashboards.api import API
from dashboards.web.access import token_of
from farm.web.app import Hosts
from farm.web.pages import Listening, app_of, config_of
from orchestrator.acts import ACTS, RIGHTS
from orchestrator.acts.access.storage import Storage
from orchestrator.acts.engine_builds import ADD_AGAIN, EngineBuilds
from orchestrator.acts.submission.prepare import prepare
from orchestrator.acts.submission.uploads import Held, Uploads
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.client import client_of
from orchestrator.ledger import Hold, Ledger
from orchestrator.model.base import content_hash
from orchestrator.model.device import DeviceNote, project_of
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import KeyTaken, NotAllowed
from orchestrator.model.experiment import Experiment
from orchestrator.model.people import Kind, Role
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import Host
from tests.servers import private_redis
from tests.unit.orchestrator import make
from tests.waiting import LIMIT_S, eventually

VIEW, SUBMIT, OPERATE, ADMIN = Role
TABLE: dict[str, tuple[Role, Role, str]] = {
    "POST /acts/add-group": (ADMIN, ADMIN, "farm"),
    "POST /acts/add-host": (ADMIN, ADMIN, "farm"),
    "POST /acts/add-person": (ADMIN, ADMIN, "farm"),
    "POST /acts/add-project": (ADMIN, ADMIN, "farm"),
    "POST /acts/add-webhook": (ADMIN, ADMIN, "farm"),
    "POST /acts/cancel": (OPERATE, SUBMIT, "project"),
    "POST /acts/create-token": (ADMIN, ADMIN, "farm"),
    "POST /acts/describe": (OPERATE, OPERATE, "project"),
    "POST /acts/drain-host": (OPERATE, OPERATE, "farm"),
    "POST /acts/grant-role": (ADMIN, ADMIN, "project"),
    "POST /acts/invite-person": (ADMIN, ADMIN, "farm"),
    "POST /acts/join-group": (ADMIN, ADMIN, "farm"),
    "POST /acts/leave-group": (ADMIN, ADMIN, "farm"),
    "POST /acts/create-link": (OPERATE, SUBMIT, "project"),
    "POST /acts/hold": (OPERATE, OPERATE, "farm"),
    "POST /acts/release": (OPERATE, OPERATE, "farm"),
    "POST /acts/remove-engine": (ADMIN, ADMIN, "project"),
    "POST /acts/remove-host": (ADMIN, ADMIN, "farm"),
    "POST /acts/remove-person": (ADMIN, ADMIN, "farm"),
    "POST /acts/remove-webhook": (ADMIN, ADMIN, "farm"),
    "POST /acts/restore": (OPERATE, OPERATE, "farm"),
    "POST /acts/reserve": (OPERATE, OPERATE, "farm"),
    "POST /acts/resume-host": (OPERATE, OPERATE, "farm"),
    "POST /acts/retry": (OPERATE, SUBMIT, "project"),
    "POST /acts/revoke-link": (OPERATE, SUBMIT, "project"),
    "POST /acts/revoke-role": (ADMIN, ADMIN, "project"),
    "POST /acts/revoke-token": (ADMIN, VIEW, "farm"),
    "POST /acts/screenshot": (OPERATE, SUBMIT, "farm"),
    "POST /acts/shell": (OPERATE, SUBMIT, "farm"),
    "POST /acts/set-project": (ADMIN, ADMIN, "farm"),
    "POST /acts/submit": (SUBMIT, SUBMIT, "project"),
    "POST /acts/unreserve": (OPERATE, SUBMIT, "farm"),
    "POST /acts/unschedule-suite": (OPERATE, OPERATE, "farm"),
    "GET /audit": (ADMIN, ADMIN, "farm"),
    "GET /devices": (VIEW, VIEW, "any"),
    "GET /engines": (VIEW, VIEW, "any"),
    "GET /experiments": (VIEW, VIEW, "any"),
    "GET /experiments/{id}": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/content": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/unlabelled": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/results": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/table": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/report": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/jobs": (VIEW, VIEW, "project"),
    "GET /experiments/{id}/progress": (VIEW, VIEW, "project"),
    "HEAD /files/{sha256}": (SUBMIT, SUBMIT, "project"),
    "PUT /files/{sha256}": (SUBMIT, SUBMIT, "project"),
    "GET /hosts": (VIEW, VIEW, "any"),
    "GET /hosts/closed": (VIEW, VIEW, "any"),
    "GET /inventory": (VIEW, VIEW, "any"),
    "GET /jobs/{id}": (VIEW, VIEW, "project"),
    "GET /links": (VIEW, VIEW, "any"),
    "GET /me": (VIEW, VIEW, "any"),
    "GET /people": (ADMIN, ADMIN, "farm"),
    "GET /projects": (VIEW, VIEW, "any"),
    "GET /reservations": (VIEW, VIEW, "any"),
    "GET /tokens": (VIEW, VIEW, "any"),
    "GET /webhooks": (ADMIN, ADMIN, "farm"),
}
"""Route -> the least role, the least role for one's own, and where: written by hand, as the page of people has it."""
NOT_ROUTED = {"POST /acts/create-own-token": (ADMIN, VIEW, "farm")}
"""The same of acts that pages have and the API has not."""
OPEN = {"GET /health"}
HIDES = {route for route, (_, _, where) in TABLE.items() if where == "project"} - {
    "POST /acts/submit",
    "POST /acts/describe",
    "POST /acts/remove-engine",
    "POST /acts/grant-role",
    "POST /acts/revoke-link",
    "POST /acts/revoke-role",
}
"""Routes on what is named: where who asks may not view it, it is as if it were not there."""
PAGE = Path(__file__).parents[3] / "docs" / "architecture" / "people-and-api.md"
BODIES: dict[str, dict[str, Any]] = {
    "add-group": {"name": "no name"},
    "add-host": {"name": "no name", "secret_sha256": "ab" * 32},
    "add-person": {"name": "no name"},
    "add-project": {"name": "vision"},
    "add-webhook": {"url": "no address"},
    "cancel": {"targets": ["OWNED"]},
    "create-link": {"target": "OWNED"},
    "create-token": {"name": "nobody"},
    "describe": {"serials": ["nothing"], "labels": ["vision/rack=1"]},
    "drain-host": {"name": "nothing"},
    "grant-role": {"name": "nobody", "role": "view", "project": "vision"},
    "hold": {"serials": ["nothing"]},
    "invite-person": {"name": "nobody"},
    "join-group": {"group": "nothing", "people": []},
    "leave-group": {"group": "nothing", "people": []},
    "release": {"name": "nothing"},
    "remove-engine": {"engine": "nothing", "project": "vision"},
    "remove-host": {"name": "nothing"},
    "remove-person": {"name": "nobody"},
    "remove-webhook": {"webhook": "nothing"},
    "restore": {},
    "reserve": {"serials": ["nothing"]},
    "resume-host": {"name": "nothing"},
    "revoke-role": {"name": "nobody", "project": "vision"},
    "retry": {"target": "OWNED"},
    "set-project": {"name": "nothing"},
    "unschedule-suite": {"suite": "nothing"},
}
"""Bodies of acts: on `OWNED`, or refused for another reason where they are allowed, so that nothing changes."""
EXPERIMENT = {"schema_version": 1, "name": "sent", "workload": {"network": "lenet"}, "sampling": {"blocks": 2}}
Answer = tuple[int, http.client.HTTPMessage, Any]


class Lab:
    """A farm with two projects, whose people have every role in one of them, in the other, or in the farm."""

    def __init__(self, state: Path, ledger: Ledger, host: Host, port: int, chance: random.Random) -> None:
        self.chance = chance
        self.state, self.ledger, self.host, self.port, self.own = state, ledger, host, port, token_of(state)
        for project in ("vision", "speech"):
            ledger.people.add_project(project, "")
        self.tokens, self.roles = {"none": self.person("none")}, dict[str, tuple[str, Role]]()
        for place, role in itertools.product(("", "vision", "speech"), Role):
            name = f"{place or 'farm'}.{role}"
            self.tokens[name] = self.person(name, role, place)
            self.roles[name] = (place, role)
        self.experiments = {owner: self.submitted(owner) for owner in ("somebody", *self.tokens)}

    def person(self, name: str, role: Role | None = None, place: str = "") -> str:
        """Let somebody in who has a role, or, as it is drawn, has it by a group and at most a smaller one themself."""
        people, by_group = self.ledger.people, role is not None and self.chance.random() < 0.5
        people.add(name, Kind.PERSON)
        people.grant(name, role if not by_group else None, place)
        if by_group and role is not None:
            smaller = [*Role][: [*Role].index(role)]
            for group, given in ((f"of.{name}", role), (f"beside.{name}", self.chance.choice([None, *smaller]))):
                people.add(group, Kind.GROUP)
                people.groups.join(group, [name])
                people.grant(group, given, place)
            people.grant(name, self.chance.choice([None, *smaller]), place)
        return self.ledger.people.tokens.make(name, Role.ADMINISTER, "", "", None)[1]

    def submitted(self, owner: str) -> tuple[str, str]:
        """An experiment in the project `vision`, and a job of it."""
        name = f"of-{owner}"
        job = make.job(name)
        self.ledger.submit(name, make.many(1, name=name), [job], by=owner, project="vision")
        return name, job.job_id

    def ask(self, route: str, token: str = "", body: Any = None, **headers: str) -> Answer:
        method, path = route.split(" ", 1)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        shown = {"Authorization": f"Bearer {token}"} if token else {}
        sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, API + path, sent, {"Content-Type": "application/json", **shown, **named})
            reply = connection.getresponse()
            is_json = reply.headers.get_content_type().endswith("json")
            text = reply.read() if is_json or reply.status == 304 else b"{}"
            return reply.status, reply.headers, json.loads(text or b"null")
        finally:
            connection.close()

    def reserved(self, whose: str) -> int:
        """Reserve a device of its own for somebody, or for a group that they belong to, and return the number."""
        people, standing, soon = self.ledger.people, self.ledger.standing, time.time() + 1e6
        has = self.chance.choice([whose, f"has.{whose}"])
        if has != whose:
            people.add(has, Kind.GROUP)
            people.groups.join(has, [whose])
        standing.reserve([f"for-{has}"], Hold("", has, soon, soon + 60.0, "", begins=soon))
        return max(each.id for each in standing.reservations() if each.serial == f"for-{has}")

    def called(self, route: str, owner: str) -> tuple[str, Any]:
        """A route with what it needs, about what belongs to `owner`."""
        experiment, job = self.experiments[owner]
        method, path = route.split(" ", 1)
        act = path.removeprefix("/acts/")
        given = json.loads(json.dumps(BODIES.get(act)).replace("OWNED", experiment))
        if act == "submit":
            given = {"experiment": EXPERIMENT | {"workload": {"onnx": "none.onnx"}}, "project": "vision"}
        whose = owner if owner in self.tokens else "none"
        if act == "revoke-link":
            given = {"link": self.ledger.people.links.make(experiment, "vision", whose, "", time.time() + 60.0)[0]}
        if act == "create-own-token":
            given = {"name": whose}
        if act == "revoke-token":
            given = {"token": self.ledger.people.tokens.make(whose, VIEW, "", "", None)[0]}
        if act in ("screenshot", "shell"):
            self.ledger.standing.hold([f"of-{whose}"], whose)
            given = {"serial": f"of-{whose}", **({"command": ["id"]} if act == "shell" else {})}
        if act == "unreserve":
            given = {"number": self.reserved(whose)}
        path = path.replace("{sha256}", "ab" * 32 + "?project=vision")
        return f"{method} {path.replace('{id}', job if 'jobs/{' in path else experiment)}", given


@pytest.fixture(scope="module")
def lab(seed: int) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory(prefix="farm-") as folder, pytest.MonkeyPatch.context() as patch:
        state = Path(folder) / "farm"
        with private_redis(Path(folder)) as url:
            patch.setenv("FARM_REDIS_URL", url)
            settings = Settings(state=state, redis_url=url, host="lab")
            with Ledger(settings.ledger) as ledger, client_of(settings) as redis:
                host = Host(settings, redis, [make.device("A")])
                with served(config_of(app_of(state, Listening(port=1)), Listening())) as port:
                    yield Lab(state, ledger, host, port, random.Random(seed))


@contextmanager
def served(config: uvicorn.Config) -> Iterator[int]:
    """Serve as the farm serves its pages, at the port that this gives."""
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def allowed(route: str, place: str, role: Role | None, mine: bool) -> bool:
    """The table, read as a person would."""
    least, own, where = (TABLE | NOT_ROUTED)[route]
    least = own if mine and role is not None else least
    order = [VIEW, SUBMIT, OPERATE, ADMIN]
    if role is None or order.index(role) < order.index(least):
        return False
    if where == "any" or place == "":
        return True
    return place == "vision" if where == "project" else mine and own is not (TABLE | NOT_ROUTED)[route][0]


def test_every_route_takes_exactly_its_right(lab: Lab, seed: int) -> None:
    """Ask on one's own and on another's; on one of them, drawn, where the table says that it is all the same."""
    chance = random.Random(seed)
    status, _, schema = lab.ask("GET /openapi.json")
    routes = {f"{method.upper()} {path}" for path, own in schema["paths"].items() for method in own}
    assert status == 200 and schema["openapi"].startswith("3.1") and routes == TABLE.keys() | OPEN
    others = {"submit", "revoke-token", "revoke-link", "screenshot", "shell", "unreserve"}
    offered = {route.rpartition("/")[2] for route in TABLE if "/acts/" in route}
    assert BODIES.keys() | others == offered, "give a new act its body in `BODIES`"
    wrong = list[str]()
    for route, name in itertools.product(TABLE, lab.tokens):
        place, role = lab.roles.get(name, ("", None))
        may = {mine: allowed(route, place, role, mine) for mine in (True, False)}
        for mine in may if may[True] is not may[False] else [chance.random() < 0.5]:
            path, body = lab.called(route, name if mine else "somebody")
            status, _, said = lab.ask(path, lab.tokens[name], body)
            refused = status == 403 or (route in HIDES and status == 404)
            if refused is may[mine] or status >= 500:
                wrong.append(f"{route} as {name}, {'own' if mine else 'not own'}: {status} {said}")
    assert not wrong, "\n".join(wrong)


def test_a_token_gives_no_more_than_it_says(lab: Lab, seed: int) -> None:
    chance = random.Random(seed)
    wrong = list[str]()
    for _ in range(60):
        route, name = chance.choice(sorted(TABLE.keys() - {"POST /acts/revoke-token"})), chance.choice([*lab.roles])
        (place, role), most, only = lab.roles[name], chance.choice([*Role]), chance.choice(["", "vision", "speech"])
        _, text = lab.ledger.people.tokens.make(name, most, only, "", None)
        left = min(role, most, key=[*Role].index) if only in ("", place) or place == "" else None
        path, body = lab.called(route, "somebody")
        status, _, said = lab.ask(path, text, body)
        refused = status == 403 or (route in HIDES and status == 404)
        if refused is allowed(route, only or place, left, mine=False):
            wrong.append(f"{route} as {name}, at most {most} in {only or 'all'}: {status} {said}")
    assert not wrong, "\n".join(wrong)


def test_nobody_passes_without_a_token(lab: Lab, seed: int) -> None:
    chance = random.Random(seed)
    for route in TABLE:
        method, path = lab.called(route, "somebody")[0].split(" ", 1)
        for other in {method, chance.choice(["GET", "POST", "PUT", "DELETE", "PATCH"])}:
            token = chance.choice(["", "x", "farm_" + "A" * 43, lab.own[:-1], "\N{SNOWMAN}".encode().decode("latin-1")])
            status, headers, said = lab.ask(f"{other} {path}", token)
            assert status == 401 and (other == "HEAD" or said["cause"] == "unknown_token"), route
            assert headers["WWW-Authenticate"] == "Bearer" and headers.get_content_type() == "application/problem+json"
    for path in ("/nothing", "/experiments/%0A", "/%0A/x", "/experiments/..%2F..%2Faudit", "//", "/openapi.json/"):
        assert lab.ask(f"GET {path}")[0] == 401, path
        status, headers, _ = lab.ask(f"GET {path}", lab.own)
        assert 400 <= status < 500 and headers.get_content_type() == "application/problem+json", path
    assert lab.ask("GET /health")[0] == 200


def test_a_host_is_no_person_and_a_person_no_host(lab: Lab) -> None:
    secret = "s" * 43
    lab.ledger.standing.admit_host("lab2", hashlib.sha256(secret.encode()).hexdigest())
    hosts = Hosts(lambda: lab.ledger)
    assert hosts.of(f"Bearer {secret}") == "lab2" and lab.ask("GET /me", secret)[0] == 401
    for token in (lab.own, *lab.tokens.values()):
        assert hosts.of(f"Bearer {token}") == "" and lab.ask("GET /health", token)[0] == 200


def test_a_token_that_ended_counts_no_more(lab: Lab) -> None:
    people = lab.ledger.people
    first, second = lab.person("leaves", Role.VIEW), people.tokens.make("leaves", Role.VIEW, "", "", None)
    assert [lab.ask("GET /me", each)[0] for each in (first, second[1])] == [200, 200]
    assert lab.ask("POST /acts/revoke-token", first, {"token": second[0]})[0] == 200
    assert [lab.ask("GET /me", each)[0] for each in (first, second[1])] == [200, 401]
    assert lab.ask("POST /acts/remove-person", lab.own, {"name": "leaves"})[0] == 200
    assert lab.ask("GET /me", first)[0] == 401
    assert lab.ask("POST /acts/add-person", lab.own, {"name": "leaves"})[2]["did"]
    assert lab.ask("GET /me", first)[0] == 401, "it is not given back"
    assert lab.ask("GET /me", people.tokens.make("farm.view", Role.VIEW, "", "", time.time() - 1.0)[1])[0] == 401


def test_a_token_is_shown_once_and_kept_as_a_hash(lab: Lab) -> None:
    _, _, said = lab.ask("POST /acts/create-token", lab.own, {"name": "farm.view", "note": "of a test"})
    text = said["result"]["token"]
    assert lab.ask("GET /me", text)[2] == {"name": "farm.view", "farm": "view", "projects": {}}
    kept = b"".join(path.read_bytes() for path in lab.state.glob("ledger.sqlite*"))
    assert said["result"]["id"].encode() in kept and text.encode() not in kept

    def listed() -> dict[str, Any]:
        found = lab.ask("GET /tokens?most=500", lab.own)[2]["items"]
        assert text not in json.dumps(found)
        return next(each for each in found if each["note"] == "of a test")

    eventually(lambda: listed()["used_at"] is not None)
    assert {each["person"] for each in lab.ask("GET /tokens", text)[2]["items"]} == {"farm.view"}


def test_no_read_waits_for_who_writes(lab: Lab, seed: int) -> None:
    """Whatever is read, also with a token or by a link that was never used before, while a long transaction writes, and
    more acts wait for it than there are threads for reads."""
    chance, token = random.Random(seed), lab.person("reader", VIEW)
    link = lab.ledger.people.links.make(lab.experiments["none"][0], "vision", "none", "", time.time() + 60.0)[1]
    routes = [route for route in TABLE if route.startswith("GET ") and "table" not in route and "progress" not in route]
    acts = [("submit", {"experiment": EXPERIMENT, "project": "vision"}), ("create-token", {"name": "reader"})]
    acts.append(("grant-role", {"name": "reader", "role": "view", "project": "vision"}))
    lab.host.announce()
    with ThreadPoolExecutor(45) as threads:
        with lab.ledger._database.write():
            drawn = chance.choices(acts, k=45)
            waiting = [threads.submit(lab.ask, f"POST /acts/{act}", lab.own, body) for act, body in drawn]
            for route in chance.sample(sorted(routes), 6):
                asked, _ = lab.called(route, "none")
                status, _, said = lab.ask(asked, token)
                assert status in (200, 403, 409), (asked, said)
            assert not any(each.done() for each in waiting), "a read waited for acts"
            with urlopen(f"http://127.0.0.1:{lab.port}/public/{link}", timeout=LIMIT_S) as page:
                assert page.status == 200
        answers = [each.result() for each in waiting]
    assert {each[0] for each in answers} <= {200, 503}, answers  # it may have written for longer than acts wait


def test_no_act_takes_and_no_answer_tells_more_than_its_form(lab: Lab, seed: int) -> None:
    """Whoever sends a property that is not theirs to set is refused; what the ledger keeps of secrets is in no list."""
    chance, words = random.Random(seed), ("role", "owner", "submitter", "project_id", "is_admin", "sha256", "used_at")
    for route in sorted(route for route in TABLE if route.startswith("POST ")):
        asked, body = lab.called(route, "none")
        status, _, said = lab.ask(asked, lab.own, {**(body or {}), f"{chance.choice(words)}_": chance.choice(["x", 1])})
        assert status == 422 and "there is no such field" in said["detail"], (route, said)
    hook, key = lab.ledger.people.webhooks.add("https://ci.lab/", "", "none")
    with closing(sqlite3.connect(lab.state / "ledger.sqlite")) as connection:
        secrets = {
            key,
            *(row[0] for table in ("tokens", "links") for row in connection.execute(f"SELECT sha256 FROM {table}")),
        }
    lab.ledger.people.webhooks.end(hook)
    lists = [route for route, (_, _, where) in TABLE.items() if route.startswith("GET ") and where != "project"]
    text = "".join(
        json.dumps(lab.ask(f"{route}?most=500" if route != "GET /me" else route, lab.own)[2]) for route in lists
    )
    assert len(secrets) > 9 and not [each for each in secrets if each in text]
    assert {
        lab.ask(f"{route}?most=501", lab.own)[0] for route in lists if route not in ("GET /me", "GET /hosts/closed")
    } == {422}


def test_what_is_done_and_what_is_refused_is_in_the_audit(lab: Lab) -> None:
    target = lab.submitted("vision.submit-2")[0]
    assert lab.ask("POST /acts/cancel", lab.tokens["vision.submit"], {"targets": [target]})[0] == 403
    assert lab.ask("POST /acts/cancel", lab.tokens["speech.submit"], {"targets": [target]})[0] == 404
    assert lab.ask("POST /acts/cancel", lab.tokens["vision.operate"], {"targets": [target]})[0] == 200
    status, _, said = lab.ask("GET /audit?act=cancel&most=3", lab.own)
    assert status == 200
    found = [(each["who"], each["door"], each["origin"], each["refused"], each["target"]) for each in said["items"]]
    assert found == [
        ("vision.operate", "api", "127.0.0.1", False, target),
        ("speech.submit", "api", "127.0.0.1", True, target),
        ("vision.submit", "api", "127.0.0.1", True, target),
    ]
    sent = {"experiment": EXPERIMENT, "project": "vision"}
    assert lab.ask("POST /acts/submit", lab.tokens["vision.view"], sent)[0] == 403
    assert lab.ask("GET /audit?refused=true&act=submit&most=1", lab.own)[2]["items"][0]["target"] == "sent"
    refused = lab.ask("GET /audit?refused=true&who=vision.submit&act=cancel", lab.own)[2]
    assert refused["total"] >= 1 and {each["refused"] for each in refused["items"]} == {True}


def test_a_submission_with_a_key_is_done_once(lab: Lab) -> None:
    body = {"experiment": EXPERIMENT | {"name": "keyed"}, "project": "vision"}
    token = lab.tokens["vision.submit"]

    def send(_: int) -> Answer:
        lab.host.announce()  # what it announced is forgotten after a while
        return lab.ask("POST /acts/submit", token, body, Idempotency_Key="one")

    with ThreadPoolExecutor(4) as threads:
        answers = [each for each in threads.map(send, range(4)) if each[0] != 409]
    answers.append(send(0))
    assert {each[0] for each in answers} == {200}, answers
    assert len({json.dumps(each[2], sort_keys=True) for each in answers}) == 1 and answers[0][2]["did"]
    assert answers[-1][1]["Idempotency-Replayed"] == "true"
    names = [each["experiment"] for each in lab.ask("GET /experiments?submitter=vision.submit", token)[2]["items"]]
    assert sum(name.startswith("keyed-") for name in names) == 1
    other = body | {"again": True}
    assert lab.ask("POST /acts/submit", token, other, Idempotency_Key="one")[0] == 422
    theirs = lab.ask("POST /acts/submit", lab.tokens["vision.operate"], other, Idempotency_Key="one")
    assert theirs[0] == 200 and "Idempotency-Replayed" not in theirs[1], "a key is its person's own"


def test_the_same_content_in_another_project_is_another_experiment(lab: Lab) -> None:
    body = {"experiment": EXPERIMENT | {"name": "twice"}}
    lab.host.announce()
    ids = [
        lab.ask("POST /acts/submit", lab.tokens[f"{name}.submit"], body | {"project": name})[2]["result"]["experiment"]
        for name in ("vision", "speech", "vision")
    ]
    assert ids[0] == ids[2] != ids[1]
    assert lab.ask(f"GET /experiments/{ids[1]}", lab.tokens["vision.administer"])[0] == 404
    seen = lab.ask("GET /experiments?most=500", lab.tokens["speech.view"])[2]["items"]
    assert {each["project"] for each in seen} == {"speech"} and ids[1] in {each["experiment"] for each in seen}


def test_what_is_a_project_s_is_seen_by_who_may_view_it(lab: Lab) -> None:
    """Folders of engines and labels of devices; what has no project is everybody's. One that is damaged is told."""
    projects, artifacts = ("", "vision", "speech"), Artifacts(lab.state)
    files = {"a": artifacts.put_bytes(b"")}
    for project, abi in itertools.product(projects, ("x86_64", "x86")):
        build = EngineBuild(engine="pocketfarm", abi=abi, program="a", files=files, bytes=1, version=f"of {project}")
        EngineBuilds(artifacts, project).keep(build)
        if abi == "x86":
            artifacts.path(EngineBuilds(artifacts, project).put(build)).write_bytes(b"\xff")
    lab.ledger.standing.note({"A": DeviceNote(labels=("rack=1", "speech/rack=2", "vision/rack=3"))})
    lab.host.announce()
    for name, (place, _) in lab.roles.items():
        sees = {"", place} if place else {*projects}
        (engine,) = lab.ask("GET /engines", lab.tokens[name])[2]["items"]
        told = {(each["project"], each["version"], ADD_AGAIN in each["damaged"]) for each in engine["builds"]}
        assert told == {(of, f"of {of}", False) for of in sees} | {(of, "", True) for of in sees}
        (device,) = lab.ask("GET /devices", lab.tokens[name])[2]["items"]
        assert {project_of(each) for each in device["noted"]["labels"]} == sees


FILES: list[dict[str, Any]] = [
    {"workload": {"onnx": "FILE"}},
    {"workload": {"language_model": "FILE"}},
    {"workload": {"network": "lenet", "input": "FILE"}},
    {"workload": {"network": "lenet", "choices": "FILE"}},
    {"workload": {"command": "./a", "files": "FILE"}},
    {"workload": {"network": "lenet", "dataset": {"inputs": "FILE"}}},
    {"workload": {"network": "lenet", "training": {"dataset": {"inputs": "FILE", "labels": "FILE"}}}},
    {"strategy": {"file": "FILE"}},
    {"engine": {"models": {"ncnn": ["FILE"]}}},
    {"sides": {"baseline": {"onnx": "FILE"}, "candidate": {}}},
    {"sides": {"baseline": {"agent": "FILE"}, "candidate": {}}},
    {"sides": {"baseline": {"driver": "FILE"}, "candidate": {}}},
    {"workload": {"onnx": "a", "onnx_sha256": "ab" * 32}},
    {"workload": {"network": "lenet", "files_sha256": {"a": "ab" * 32}}},
    {"engine": {"builds": {"command": {"x86_64": "ab" * 32}}}},
]
"""Every way in which an experiment may name a file."""


CODE = ("command", "files", "models", "file", "agent", "driver", "builds", "engine")
"""Fields of these that bring code."""


def test_who_may_submit_brings_no_code(lab: Lab, seed: int) -> None:
    """Nobody does but who administers the farm; what is refused so is in the audit."""
    chance = random.Random(seed)
    more = [{"workload": [{"network": "lenet"}, {"command": "./a"}]}, {"workload": {"model": "m.pte"}}]
    for named in [*FILES, *more, {"sides": {"baseline": {"engine": {"command": "FILE"}}, "candidate": {}}}]:
        experiment = EXPERIMENT | named
        name = chance.choice([each for each in lab.tokens if each.startswith("vision") and each != "vision.view"])
        body = {"experiment": experiment, "project": "vision"}
        status, _, said = lab.ask("POST /acts/submit", lab.tokens[name], body)
        if any(f'"{field}"' in json.dumps(named) for field in (*CODE, "model")):
            assert status in (403, 422), said
            assert status == 422 or "brings code" in said["detail"], said
        else:
            assert status == 422, said
    row = lab.ledger.audit.newest(200, refused=True)
    assert sum("brings code" in each.said for each in row) >= 5


@pytest.mark.parametrize("named", FILES, ids=lambda each: json.dumps(each)[:60])
def test_an_experiment_that_is_sent_reads_no_file_of_the_farm(lab: Lab, named: dict[str, Any], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for them")
    wanted = json.loads(json.dumps(named).replace("FILE", str(secret)))
    status, _, said = lab.ask("POST /acts/submit", lab.own, {"experiment": EXPERIMENT | wanted})
    assert status == 422 and "not for them" not in json.dumps(said), said
    kept = [path for path in lab.state.rglob("*") if path.is_file() and b"not for them" in path.read_bytes()]
    assert kept == []


def _sent(lab: Lab, token: str, content: bytes, project: str, chance: random.Random) -> None:
    """Send a file in pieces of random sizes; now and then the line breaks in the middle of one."""
    path = f"/files/{hashlib.sha256(content).hexdigest()}?project={project}"
    begun = time.monotonic()
    while time.monotonic() < begun + LIMIT_S:  # one whose line broke holds the file until that is noticed
        _, headers, _ = lab.ask(f"HEAD {path}", token)
        if headers["Upload-Complete"] == "?1":
            assert int(headers["Upload-Offset"]) == len(content)
            return
        offset = int(headers["Upload-Offset"])
        piece = content[offset : offset + chance.randint(1, len(content))]
        named = {"Upload_Offset": str(offset), "Upload_Length": str(len(content))}
        if chance.random() < 0.3:
            with socket.create_connection(("127.0.0.1", lab.port)) as line:
                told = {**named, "Authorization": f"Bearer {token}", "Content-Length": str(len(piece)), "Host": "a"}
                head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in told.items())
                line.sendall(f"PUT {API}{path} HTTP/1.1\r\n{head}\r\n".encode() + piece[: len(piece) // 2])
        else:
            status, _, said = lab.ask(f"PUT {path}", token, piece, **named)
            assert status in (204, 409), said
    raise AssertionError("it never came to its end")


def test_files_that_are_sent_run_as_those_of_the_farm_s_machine(lab: Lab, seed: int, tmp_path: Path) -> None:
    """The same experiment gets the same id, wherever its file came from; and only in the project that sent it."""
    chance, token = random.Random(seed), lab.tokens["vision.submit"]
    image = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [1, 2, 5, seed % 97 + 1]) for each in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", image[:1], image[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content = model.SerializeToString()
    name = chance.choice(["net.onnx", "../models/net.onnx", "/srv/anna/net.onnx", "./a b/net.onnx"])
    sha256 = hashlib.sha256(content).hexdigest()
    asked = {"experiment": EXPERIMENT | {"workload": {"onnx": name}}, "files": {name: sha256}}
    lab.host.announce()
    status, _, said = lab.ask("POST /acts/submit", token, asked | {"project": "vision"})
    assert status == 422 and sha256 in said["detail"] and "PUT" in said["remedy"]
    _sent(lab, token, content, "vision", chance)
    lab.host.announce()
    status, _, said = lab.ask("POST /acts/submit", token, asked | {"project": "vision"})
    assert status == 200, said
    theirs = lab.ask("POST /acts/submit", lab.tokens["speech.submit"], asked | {"project": "speech"})
    assert theirs[0] == 422 and sha256 in theirs[2]["detail"], "another project has not sent it"
    (tmp_path / "net.onnx").write_bytes(content)
    experiment = Experiment.model_validate(asked["experiment"])
    own = prepare(experiment, _Anywhere(tmp_path), Artifacts(tmp_path / "state"))
    assert said["result"]["experiment"].startswith(f"sent-{content_hash(own)[:8]}")
    assert not [*lab.state.glob(".sent-*")]


class _Anywhere(PosixPath):
    """A folder that has one file under every name."""

    def __truediv__(self, name: object) -> Path:  # type: ignore[override]
        return Path(self) / "net.onnx"


def test_what_is_no_file_of_its_hash_or_too_much_is_refused(
    lab: Lab, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, token = random.Random(seed), lab.tokens["speech.submit"]
    content = chance.randbytes(chance.randint(1000, 200_000))
    path = f"/files/{hashlib.sha256(content).hexdigest()}?project=speech"
    wrong = bytearray(content)
    wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
    status, _, said = lab.ask(f"PUT {path}", token, bytes(wrong))
    assert status == 422 and "SHA-256" in said["detail"]
    assert lab.ask(f"HEAD {path}", token)[1]["Upload-Offset"] == "0", "what is wrong is not gone on with"
    status, _, said = lab.ask(f"PUT {path}", token, content[10:], Upload_Offset="10")
    assert (status, said["remedy"]) == (409, "send it from byte 0")
    assert lab.ask(f"PUT {path}", token, content, Upload_Length=str(len(content) - 1))[0] == 422
    monkeypatch.setenv("FARM_PROJECT_FILES_BYTES", str(len(content) - 1))
    status, _, said = lab.ask(f"PUT {path}", token, content)
    assert status == 403 and str(len(content)) in said["detail"] and said["remedy"]
    monkeypatch.setenv("FARM_PROJECT_FILES_BYTES", str(len(content)))
    assert lab.ask(f"PUT {path}", token, content)[1]["Upload-Complete"] == "?1"
    assert lab.ask(f"PUT {path}", token, b"")[1]["Upload-Complete"] == "?1", "it is there"
    assert lab.ask(f"PUT {path.replace('speech', 'nothing')}", lab.own, content)[0] == 404
    stored = next((lab.state / "uploads" / "speech").iterdir())
    os.utime(stored, (0.0, 0.0))
    monkeypatch.delenv("FARM_PROJECT_FILES_BYTES")
    _sent(lab, token, b"another", "speech", chance)
    assert not stored.exists(), "nobody used it for a while"


def storage_of(state: Path, most: int) -> Storage:
    return Storage(state, "vision", lambda: ([], 0), usual_bytes=most)


def test_files_that_come_at_the_same_time_share_the_storage(seed: int, tmp_path: Path) -> None:
    chance, count = random.Random(seed), random.Random(seed).randint(2, 6)
    contents = [chance.randbytes(chance.randint(1, 1000)) for _ in range(count)]
    most = chance.randint(max(map(len, contents)), sum(map(len, contents)) - 1)
    uploads, stored = Uploads(storage_of(tmp_path, most)), 0
    gone = tmp_path / "uploads" / "vision" / "gone"
    gone.parent.mkdir(parents=True)
    gone.symlink_to("nothing")  # as a file that another request removes between a look at the folder and one at it
    with ExitStack() as stack:
        names = [hashlib.sha256(each).hexdigest() for each in contents]
        coming = [
            stack.enter_context(uploads.coming(name, 0, len(each))) for name, each in zip(names, contents, strict=True)
        ]
        for one, content in zip(coming, contents, strict=True):
            one.write(content)
        for one in coming:
            with suppress(NotAllowed):
                stored += one.end().bytes
    gone.unlink()
    kept = [path.stat().st_size for path in gone.parent.iterdir()]
    assert 0 < sum(kept) == stored <= most


@pytest.mark.parametrize("look", range(3))
def test_a_file_that_becomes_whole_between_two_looks_is_there(
    look: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads, name, asked, stat = Uploads(storage_of(tmp_path, 1000)), "a" * 64, itertools.count(), Path.stat
    whole = tmp_path / "uploads" / "vision" / name
    whole.parent.mkdir(parents=True)

    def late(path: Path, **options: bool) -> os.stat_result:
        if next(asked) == look:
            with suppress(FileNotFoundError):
                whole.with_suffix(".part").rename(whole)
        return stat(path, **options)

    whole.with_suffix(".part").write_bytes(b"x" * 100)
    monkeypatch.setattr(Path, "stat", late)
    assert uploads.held(name) in (Held(100, False), Held(100, True))
    asked = itertools.count()
    with suppress(KeyTaken), uploads.coming(name, 0, 100):
        pass


def test_an_answer_that_is_as_it_was_is_not_sent_again(lab: Lab) -> None:
    name = lab.submitted("etag")[0]
    path = f"GET /experiments/{name}"
    _, headers, _ = lab.ask(path, lab.own)
    tag = headers["ETag"]
    status, again, body = lab.ask(path, lab.own, If_None_Match=tag)
    assert (status, again["ETag"], body) == (304, tag, None)
    lab.ask("POST /acts/cancel", lab.own, {"targets": [name]})
    status, changed, body = lab.ask(path, lab.own, If_None_Match=tag)
    assert status == 200 and changed["ETag"] != tag and body["finished"]


def test_pages_of_a_list_make_the_whole(lab: Lab, seed: int) -> None:
    most, first, found = random.Random(seed).randint(1, 6), 0, list[str]()
    total = lab.ask("GET /experiments", lab.own)[2]["total"]
    while first is not None:
        said = lab.ask(f"GET /experiments?first={first}&most={most}", lab.own)[2]
        found += [each["experiment"] for each in said["items"]]
        first = said["next"]
    assert len(found) == len({*found}) == total


def test_progress_streams_until_it_is_over(lab: Lab) -> None:
    name = lab.submitted("streamed")[0]
    connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=60)
    connection.request("GET", f"{API}/experiments/{name}/progress", headers={"Authorization": f"Bearer {lab.own}"})
    reply = connection.getresponse()
    assert reply.status == 200 and reply.headers.get_content_type() == "text/event-stream"
    first = [reply.readline() for _ in range(3)][-1]
    assert json.loads(first.removeprefix(b"data: "))["counts"] == {"waiting": 1}
    lab.ask("POST /acts/cancel", lab.own, {"targets": [name]})
    last = [line for line in reply.read().splitlines() if line.startswith(b"data: ")][-1]  # the server ends it
    connection.close()
    assert json.loads(last.removeprefix(b"data: ")) == {
        "experiment": name,
        "finished": True,
        "counts": {"cancelled": 1},
    }


def test_a_body_is_bounded_while_it_comes(lab: Lab) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=60)
    headers = {"Authorization": f"Bearer {lab.own}", "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    chunks = (b" " * (1 << 20) for _ in range(64))
    try:
        connection.request("POST", f"{API}/acts/cancel", chunks, headers, encode_chunked=True)
        status = connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):  # it was answered before all was sent
        status = 413
    finally:
        connection.close()
    assert status == 413
    claims = lab.ask("POST /acts/cancel", lab.own, b"{}", Content_Length=str(10**10))
    assert claims[0] == 413 and claims[2]["detail"]


def test_an_error_says_what_where_and_how_to_mend_it(lab: Lab) -> None:
    wrong = {"experiment": EXPERIMENT | {"sampling": {"blocks": "many"}}}
    status, headers, said = lab.ask("POST /acts/submit", lab.own, wrong)
    assert status == 422 and headers.get_content_type() == "application/problem+json"
    assert said["where"] == "body.experiment.sampling.blocks" and "whole number" in said["detail"] and said["remedy"]
    status, _, said = lab.ask("POST /acts/cancel", lab.own, {"targets": ["of-nobody"]})
    assert (status, said["cause"]) == (404, "unknown_name") and "of-none" in said["remedy"]
    said = lab.ask("POST /acts/cancel", lab.tokens["speech.administer"], {"targets": ["of-nobody"]})[2]
    assert said["remedy"] is None, "names of another project are not told"


def test_every_risk_has_a_test_that_is_there() -> None:
    tests = "".join(path.read_text() for path in PAGE.parents[2].glob("tests/**/test_*.py"))
    risks = re.findall(r"^\| [^|]+ \| (`test_.*) \|$", PAGE.with_name("many-readers.md").read_text(), re.MULTILINE)
    named = [name for told in risks for name in re.findall(r"`(\w+)`", told)]
    assert len(risks) == 10 and not [name for name in named if f"def {name}(" not in tests]


def test_the_page_of_people_has_every_act_with_its_right() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| (.*?) \|$", PAGE.read_text(), re.MULTILINE)
    told = {name: (role, where) for names, role, where in rows for name in re.findall(r"`([^`]+)`", names)}
    assert RIGHTS.keys() == ACTS.keys() == {name for name in told if not name.startswith(("/", "GET"))}
    for name, each in RIGHTS.items():
        needs, (role, where) = each.needs, told[name]
        own = f"; one's own: {needs.own}" if needs.own else ""
        assert role == f"{needs.least}{own}" and (where == "farm") is (needs.of == "farm"), name
