"""People on the pages of a real server: exactly the table of rights, how they log in, and what is public."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode
from xml.etree import ElementTree

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from dashboards.web.access import Access
from dashboards.web.charts import boards
from dashboards.web.people.attempts import BY_ADDRESS, BY_NAME, MOST_KEYS, Attempts
from farm.cli.app import main
from farm.web.pages import Listening, app_of
from orchestrator.acts import ON_PAGES
from orchestrator.exchange.samples import import_samples
from orchestrator.ledger import Ledger
from orchestrator.ledger.people import passwords
from orchestrator.model.live.announcement import Progress
from orchestrator.model.people import Role, Use
from orchestrator.nightly.night import Wave
from tests.unit.history import made
from tests.unit.orchestrator import make

from .test_http_api import ADMIN, VIEW, Lab, allowed, lab

__all__ = ["lab"]
PAGES: dict[str, tuple[Role, str]] = {
    "/": (VIEW, "any"),
    "/queue": (VIEW, "any"),
    "/experiments": (VIEW, "any"),
    "/experiments/{id}": (VIEW, "project"),
    "/experiments/{id}/report": (VIEW, "project"),
    "/experiments/{id}/samples.{form}": (VIEW, "project"),
    "/experiments/{id}/sustained{number:int}.svg": (VIEW, "project"),
    "/jobs/{id}": (VIEW, "project"),
    "/devices/{serial:path}": (VIEW, "any"),
    "/ranking": (VIEW, "any"),
    "/nights": (VIEW, "farm"),
    "/nights/{id}": (VIEW, "farm"),
    "/nights/{id}/report": (VIEW, "farm"),
    "/hosts": (VIEW, "any"),
    "/calendar": (VIEW, "any"),
    "/charts": (VIEW, "farm"),
    "/charts/{board}": (VIEW, "farm"),
    "/charts/{board}/{number:int}.svg": (VIEW, "farm"),
    "/links": (VIEW, "any"),
    "/me": (VIEW, "any"),
    "/projects": (VIEW, "any"),
    "/people": (ADMIN, "farm"),
    "/people/{name}": (ADMIN, "farm"),
    "/audit": (ADMIN, "farm"),
    "/glossary": (VIEW, "any"),
}
"""Page -> the least role, and where: written by hand, as the page of people has it."""
OPEN = {"GET /sign-in", "POST /sign-in", "GET /password", "POST /password"} | {
    f"GET /public/{{secret}}{of}" for of in ("", "/badge.svg", "/feed.atom")
}
"""The routes that take no session: the ways to one, and what a link's secret opens."""
OF_A_SESSION = {"POST /sign-out", "GET /events", "POST /do/{what}", "GET /{path:path}"}
"""The routes that have the rights of the page or the act that it names."""
OURS = {"GET /static/report.css"}
NOTHING, LACKS = {"/nights/{id}", "/nights/{id}/report", "/experiments/{id}/sustained{number:int}.svg"}, "has 0 charts"
"""Pages of what this lab lacks: 404 for whoever may look; and words by which that is told from a refusal."""
Reply = tuple[int, http.client.HTTPMessage, str]


class Web:
    """The pages of the lab, as browsers of its people ask for them."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.access = lab, Access(lab.own)
        people = lab.ledger.people
        self.cookies = {name: people.tokens.make(name, ADMIN, "", "", None, Use.SESSION) for name in lab.tokens}

    def ask(self, path: str, name: str = "", form: dict[str, str] | None = None) -> Reply:
        return self.send(path, self.cookies[name][1] if name else "", form)

    def send(self, path: str, cookie: str, form: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.lab.port, timeout=60)
        headers = {"Cookie": f"{self.access.cookie}={cookie}"} if cookie else {}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        try:
            if form is None:
                connection.request("GET", path, None, headers)
            else:
                connection.request("POST", path, urlencode(form), headers | kind)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def act(self, what: str, name: str, /, **fields: str) -> str:
        """Return what a form's act told."""
        cookie = self.cookies[name][1]
        form = {**fields, "form_token": self.access._signed("form", cookie)}
        status, headers, _ = self.send(f"/do/{quote(what)}", cookie, form)
        assert status == 303
        return said(headers)

    def address(self, path: str, owner: str = "somebody") -> str:
        experiment, job = self.lab.experiments[owner]
        named = {"{id}": job if path.startswith("/jobs") else experiment, "{serial:path}": "A", "{form}": "csv",
                 "{board}": "experiment", "{number:int}": str(boards()["experiment"].panels[0].number),
                 "{name}": "none"}  # fmt: skip
        return re.sub(r"\{[^}]*\}", lambda each: quote(named[each[0]], safe=""), path)

    def press(self, path: str, button: str, name: str, /, **fields: str) -> str:
        """Send a form of a page as the page has it, with fields of one's own, and return what the next page tells."""
        forms = re.findall(r'<form method="post" action="([^"]+)"(.*?)<button[^>]*>([^<]*)</button>',
                           self.ask(path, name)[2], re.DOTALL)  # fmt: skip
        action, inside, _ = next(each for each in forms if each[2] == button)
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', inside)
        kept = {key: unescape(value) for key, value in hidden}
        assert fields.keys() <= {*re.findall(r' name="([^"]*)"', inside)}, (button, inside)
        status, headers, _ = self.ask(unquote(action).replace(" ", "%20"), name, {**kept, **fields})
        assert status == 303 and headers["Location"] == path
        return said(headers)


def said(headers: http.client.HTTPMessage) -> str:
    (cookie,) = [each for each in headers.get_all("Set-Cookie", []) if each.startswith("farm_said=")]
    return base64.urlsafe_b64decode(unquote(cookie.partition("=")[2].partition(";")[0]).strip('"')).decode()


@pytest.fixture(scope="module")
def web(lab: Lab) -> Iterator[Web]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "HASHER", PasswordHasher.from_parameters(CHEAPEST))
        yield Web(lab)


def may(needs: tuple[Role, str], place: str, role: Role | None) -> bool:
    """The table, read as a person would."""
    least, where = needs
    if role is None or [*Role].index(role) < [*Role].index(least):
        return False
    return where == "any" or place == "" or (where == "project" and place == "vision")


def test_every_page_takes_exactly_its_right(web: Web) -> None:
    routes = {
        f"{method} {route.path}"  # type: ignore[attr-defined]
        for route in app_of(web.lab.state, Listening(port=1)).routes
        for method in getattr(route, "methods", ())
        if method != "HEAD"
    }
    assert routes == {f"GET {path}" for path in PAGES} | OPEN | OF_A_SESSION | OURS
    wrong = list[str]()
    for path, name in itertools.product(PAGES, web.lab.tokens):
        place, role = web.lab.roles.get(name, ("", None))
        status, _, text = web.ask(web.address(path), name)
        refused = status == 403 or (PAGES[path][1] == "project" and status == 404 and LACKS not in text)
        fine = 404 if path in NOTHING else 200
        if refused is may(PAGES[path], place, role) or (not refused and status != fine):
            wrong.append(f"{path} as {name}: {status} {text[:200]}")
    assert not wrong, "\n".join(wrong)


def test_every_button_takes_exactly_the_right_of_its_act(web: Web, seed: int) -> None:
    chance, wrong = random.Random(seed), list[str]()
    for act, name in itertools.product(ON_PAGES, web.lab.tokens):
        route = f"POST /acts/{act.replace(' ', '-')}"
        place, role = web.lab.roles.get(name, ("", None))
        may = {mine: allowed(route, place, role, mine) for mine in (True, False)}
        for mine in may if may[True] is not may[False] else [chance.random() < 0.5]:
            body = web.lab.called(route, name if mine else "somebody")[1]
            target, *more = [each[0] if isinstance(each, list) and each else each for each in body.values()] or [""]
            told = web.act(act, name, target=target, **dict(zip([*body][1:], more, strict=True)))
            refused = "may not" in told or "there is no experiment or job" in told
            if refused is may[mine]:
                wrong.append(f"{act} as {name}, {'own' if mine else 'not own'}: {told}")
    assert not wrong, "\n".join(wrong)


def test_a_page_offers_what_may_be_done_and_nothing_else(web: Web) -> None:
    owner = "vision.submit"
    experiment, _ = web.lab.experiments[owner] = web.lab.submitted(f"{owner}-again")
    web.lab.ledger.place_of(experiment)
    told = web.act("reserve", "farm.operate", target="A", begins="2 h", until="3 h", name="speech", note="demo")
    number = next(each.id for each in web.lab.ledger.standing.reservations() if each.is_reserved)
    assert "A is reserved for speech from" in told
    for name in web.lab.roles:
        place, role = web.lab.roles[name]
        _, _, text = web.ask(f"/experiments/{experiment}", name)
        for act in ("cancel", "create link"):
            offered = f"/do/{quote(act)}" in text
            assert offered is allowed(f"POST /acts/{act.replace(' ', '-')}", place, role, mine=False), (act, name)
        _, _, text = web.ask("/devices/A", name)
        for act, where in (("hold", place), ("describe", "vision")):  # each project has labels
            assert (f"/do/{act}" in text) is allowed(f"POST /acts/{act}", where, role, mine=False), (act, name)
        _, _, text = web.ask("/calendar", name)
        assert "for speech" in text
        for act in ("reserve", "unreserve"):
            assert (f"/do/{act}" in text) is allowed(f"POST /acts/{act}", place, role, mine=False), (act, name)
        _, _, text = web.ask("/", name)
        rooms = {path for path in PAGES if f'<a href="{path}"' in text.partition("</header>")[0]}
        assert rooms - {"/me"} <= {path for path in PAGES if may(PAGES[path], place, role)}, name
    assert "is no more reserved" in web.act("unreserve", "farm.operate", target=str(number))


def test_who_may_not_view_a_project_sees_nothing_of_it(web: Web, seed: int) -> None:
    """A name is on no page and in no list of the API, while its jobs wait and run, whoever asked just before, or asks
    at the same moment; nor by a stream, which ends with its session."""
    chance = random.Random(seed)
    name, job = web.lab.submitted("secret")
    assert web.lab.ledger.begin_attempt(job, "A", "lab", 15.0) is not None
    waits = web.lab.submitted("hidden")[0]
    web.lab.ledger.people.links.make(name, "vision", "somebody", "of-secret", time.time() + 60.0)
    pages = [path for path, (_, where) in PAGES.items() if where == "any"]
    lists = ["GET /experiments", "GET /links", "GET /devices", "GET /hosts", "GET /projects"]
    viewers = ["vision.view", *chance.choices(["vision.view", "speech.administer", "none"], k=2), "speech.administer"]
    asked = [(each, viewer) for each in [*pages, *lists] for viewer in chance.sample(viewers, len(viewers))]

    def told(what: str, viewer: str) -> str:
        if what in lists:
            return json.dumps(web.lab.ask(what, web.lab.tokens[viewer])[2])
        return web.ask(web.address(what), viewer)[2]

    with ThreadPoolExecutor(2) as threads:
        texts = [*threads.map(lambda each: told(*each), asked)]
    for (what, viewer), text in zip(asked, texts, strict=True):
        assert viewer == "vision.view" or not re.search(r"of-(secret|hidden|somebody)", text), (what, viewer)
    seen = "".join(text for (_, viewer), text in zip(asked, texts, strict=True) if viewer == "vision.view")
    assert name in seen and waits in seen
    token, cookie = web.lab.ledger.people.tokens.make("speech.view", ADMIN, "", "", None, Use.SESSION)
    connection = http.client.HTTPConnection("127.0.0.1", web.lab.port, timeout=60)
    shown = {"Cookie": f"{web.access.cookie}={cookie}"}
    connection.request("GET", f"/events?page=/experiments/{name}", headers=shown)
    reply = connection.getresponse()
    assert reply.status == 200 and reply.readline() == b"retry: 1000\n"
    web.lab.ledger.people.tokens.end(token)
    assert b"data:" not in reply.read(), "it ends by itself, and has told nothing"
    connection.close()


def test_who_follows_an_experiment_sees_no_name_of_what_runs_elsewhere(web: Web) -> None:
    lab = web.lab
    secret, job = lab.submitted("mine")
    given = lab.ledger.begin_attempt(job, "A", "lab", 15.0)
    assert given is not None
    other = make.job("of-speech")
    lab.ledger.submit("of-speech", make.many(1, name="of-speech"), [other], by="x", project="speech")
    lab.host.announce()
    lab.host.inventory.announce_progress(
        Progress(
            serial="A", job_id=job, attempt=1, token=given.token, label="of-mine opencl", phase="running", since=1.0
        ),
        "lab",
    )
    for token, names in ((lab.tokens["speech.view"], False), (lab.own, True), (lab.tokens["speech.view"], False)):
        connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=60)
        shown = {"Authorization": f"Bearer {token}"}
        connection.request("GET", "/api/v1/experiments/of-speech/progress?look=true", headers=shown)
        reply = connection.getresponse()
        lines = [reply.readline().decode() for _ in range(3)]
        connection.close()
        assert '"running"' in lines[2] and (("of-mine" in lines[2]) is names), lines
    lab.ledger.cancel("of-speech")
    lab.ledger.cancel(secret)


def test_nobody_looks_without_a_session_where_there_are_people(web: Web, seed: int) -> None:
    chance = random.Random(seed)
    api_token = web.lab.tokens["farm.administer"]
    for path in (*PAGES, "/events", "/nothing"):
        cookie = chance.choice(["", "x", "x.y", "farm_" + "A" * 43, api_token])
        status, headers, _ = web.send(web.address(path), cookie)
        assert status == 303 and headers["Location"].startswith("/sign-in?back="), path
    for act in ON_PAGES:
        status, headers, _ = web.send(f"/do/{quote(act)}", "", {"target": "of-somebody"})
        assert (status, headers["Location"].partition("?")[0]) == (303, "/sign-in")
    status, _, text = web.send("/sign-in", "")
    assert status == 200 and 'name="password"' in text and "of-" not in text
    session = web.cookies["farm.administer"][1]
    assert web.lab.ask("GET /me", session)[0] == 401, "a session is no token of the API"


def test_a_person_sets_a_password_by_a_link_and_logs_in(web: Web) -> None:
    lab, form = web.lab, {"password": "many words in a row", "again": "many words in a row"}
    lab.person("carla", Role.VIEW, "vision")
    assert web.send("/sign-in", "", {"name": "carla", "password": form["password"]})[0] == 403
    invited = lab.ask("POST /acts/invite-person", lab.own, {"name": "carla"})[2]["result"]["token"]
    assert lab.ask("GET /me", invited)[0] == 401, "it is for a password alone"
    for wrong in ({**form, "again": "x"}, {"password": "short", "again": "short"}):
        assert web.send("/password", "", {**wrong, "token": invited})[0] == 403
    status, headers, _ = web.send("/password", "", {**form, "token": invited})
    first = headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    assert status == 303 and web.send("/me", first)[0] == 200
    assert web.send("/password", "", {**form, "token": invited})[0] == 403, "it counts once"
    kept = b"".join(path.read_bytes() for path in lab.state.glob("ledger.sqlite*"))
    assert b"$argon2id$" in kept and form["password"].encode() not in kept and first.encode() not in kept
    status, headers, _ = web.send("/sign-in", "", {"name": "carla", "password": form["password"], "back": "/queue"})
    assert (status, headers["Location"]) == (303, "/queue")
    assert "HttpOnly" in headers["Set-Cookie"] and "samesite=strict" in headers["Set-Cookie"].lower()
    second = headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    out = {"form_token": web.access._signed("form", second)}
    headers = web.send("/do/create%20own%20token", second, {**out, "target": "carla", "until": "2 h"})[1]
    assert lab.ask("GET /me", said(headers).split()[-1])[2]["name"] == "carla", "what `farm login` asks for"
    assert "within a year" in said(
        web.send("/do/create%20own%20token", second, {**out, "target": "carla", "until": "2999-01-01 00:00"})[1]
    )
    assert web.send("/sign-out", second, out)[0] == 303
    assert [web.send("/me", each)[0] for each in (first, second)] == [200, 303], "what was left counts nowhere"
    again = {"old": form["password"], "password": "other words in a row", "again": "other words in a row"}
    mine = {"form_token": web.access._signed("form", first)}
    assert web.send("/password", first, {**again, **mine, "old": "guessed words"})[0] == 403
    assert web.send("/password", first, again)[0] == 403, "no form of ours"
    assert web.send("/password", first, {**again, **mine})[0] == 303 and web.send("/me", first)[0] == 303
    assert [row.who for row in lab.ledger.audit.newest(2, act="set password")] == ["carla", "carla"]
    lab.ask("POST /acts/remove-person", lab.own, {"name": "carla"})
    assert web.send("/sign-in", "", {"name": "carla", "password": again["password"]})[0] == 403


def test_who_administers_lets_people_in_by_the_pages_alone(web: Web) -> None:
    lab, owner, rules = web.lab, "farm.administer", "vision.administer"
    assert "may use this farm" in web.press("/people", "Let them in", owner, target="dora")
    assert "may use this farm" in web.press("/people", "Let them in", owner, target="ci", service="yes")
    assert "may use this farm" in web.press("/people", "Add it", owner, target="screens")
    assert "no role" in web.press("/people/screens", "Give it", owner, role="owner")
    assert "has the role operate in the farm" in web.press("/people/screens", "Give it", owner, role="operate")
    assert "in the group screens" in web.press("/people/dora", "Join it", owner, target="screens")
    link = web.press("/people/dora", "Make a link that sets the password", owner)
    words = {"password": "many words in a row", "again": "many words in a row"}
    status, headers, _ = web.send("/password", "", {**words, "token": link.rpartition("/password#")[2]})
    session = headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    assert status == 303 and "/do/hold" in web.send("/devices/A", session)[2], "by the group"
    assert web.send("/people", session)[0] == web.send("/people/dora", session)[0] == 403
    assert "Make a link" not in web.ask("/people/ci", owner)[2], "a program has no password"
    told = web.press("/people/ci", "Make it", owner, most="view", project="vision", until="2 h", note="builds")
    token = told.split()[-1]
    assert lab.ask("GET /me", token)[0] == 403, "it has no role"
    assert "has the role submit in the project vision" in web.press(
        "/people/ci", "Give it", owner, role="submit", project="vision"
    )
    assert lab.ask("GET /me", token)[2]["projects"] == {"vision": "view"}
    page = web.ask("/people/ci", owner)[2]
    assert "token for the API: builds" in page and token not in page
    assert "counts no more" in web.press("/people/ci", "Revoke", owner) and lab.ask("GET /me", token)[0] == 401
    assert "has the role view in the project vision" in web.press(
        "/projects", "Give it", rules, target="dora", role="view", project="vision"
    )
    assert "may not" in web.act("grant role", rules, target="dora", role="view", project="speech")
    page = web.ask("/projects", rules)[2]
    assert "dora (view)" in page and "speech" not in page and "/do/set%20project" not in page
    assert (
        "dora (view)" in web.ask("/projects", "vision.view")[2] and "/do/" not in web.ask("/projects", "vision.view")[2]
    )
    assert "share of 2.5, 40 phone-hours a week" in web.press(
        "/projects", "Change it", owner, target="vision", share="2.5", phone_hours="40", most_waiting=""
    )
    assert "is no number" in web.press("/projects", "Change it", owner, target="vision", share="many")
    assert "a share of 2.5" in web.press("/projects", "Change it", owner, target="vision", phone_hours="0")
    assert "not in the group screens" in web.press("/people/dora", "Take out", owner)
    status, _, page = web.send("/devices/A", session)
    assert status == 200 and "/do/hold" not in page
    assert "End it" in web.ask("/people/dora", owner)[2] and "counts no more" in web.press(
        "/people/dora", "End it", owner
    )
    assert web.send("/devices/A", session)[0] == 303, "the session has ended"
    assert "may not use this farm" in web.press("/people/dora", "Remove dora", owner)
    assert "dora (view)" not in web.ask("/projects", owner)[2]
    assert "may use this farm" in web.press("/people/dora", "Let them in again", owner)
    shown = web.ask("/audit?act=grant+role&how=refused&who=vision.administer", owner)[2]
    assert shown.count("<tr>") == 2 and "refused: it takes the role administer in the project speech" in shown
    assert "Nobody has done such a thing" in web.ask("/audit?act=grant+role&who=nobody", owner)[2]
    assert "None that counts" in web.ask("/people/dora", owner)[2] and web.ask("/people/nobody", owner)[0] == 404


def test_a_public_link_shows_one_thing_until_it_ends(web: Web) -> None:
    lab, owner = web.lab, "vision.submit"
    experiment, job = lab.experiments["vision.operate"]
    told = web.act("create link", "vision.operate", target=experiment, until="2 h")
    way = re.search(r"http://127\.0\.0\.1:\d+(/public/farm_\S+)", told)
    assert way is not None and "may not" in web.act("create link", owner, target=lab.experiments["somebody"][0])
    story = lab.ask("POST /acts/create-link", lab.own, {"target": job})[2]["result"]["path"]
    for path, shows in ((way[1], experiment), (story, job)):
        status, headers, text = web.send(path, "")
        assert status == 200 and shows in text and not re.search(r'(href|action)="/(?!static/)', text)
        assert headers["Cache-Control"] == "no-store" and "script-src 'unsafe" not in headers["Content-Security-Policy"]
        secret = path.rpartition("/")[2]
        assert secret not in str(lab.ask("GET /links?most=500", lab.own)[2]) + str(lab.ledger.audit.newest(20))
        assert b"".join(file.read_bytes() for file in lab.state.glob("ledger.sqlite*")).find(secret.encode()) < 0
        for other in ("/experiments", f"/jobs/{job}", f"/experiments/{experiment}/report"):
            assert web.send(other, secret)[0] == 303, "it opens nothing else"
    assert "leads nowhere" in web.act("revoke link", "vision.operate", target=told.split()[4])
    assert [web.send(path, "")[0] for path in (way[1], story, "/public/farm_x")] == [404, 200, 404]
    ended = lab.ledger.people.links.make(experiment, "vision", "somebody", "", time.time() - 1.0)[1]
    assert web.send(f"/public/{ended}", "")[0] == 404


def test_links_to_nights_and_comparisons_are_of_who_may_see_them(web: Web, seed: int, tmp_path: Path) -> None:
    lab, chance = web.lab, random.Random(seed)
    worse = frozenset(chance.sample("lmn", chance.randrange(3)))
    found = made.nights(3, lambda at, _, net, side: 1.3 if at == 2 and side == "b" and net in worse else 1.0, ("A",))
    hostile = made.judged(3, [], ("A",), outcome="not_run", problems=("<b> & ]]>",), missing=[made.missing("<&>")])
    made.kept(lab.ledger, [*found, hostile])
    for name, ms in (("one", 1.0), ("two", 2.0)):
        rows = "".join(f"d,n,,cpu,fp32,{block},{ms + chance.random() / 99}\n" for block in range(6))
        (tmp_path / name).write_text(f"device,network,layer,backend,precision,block,sample_ms\n{rows}")
    two = ",".join(import_samples(lab.ledger, tmp_path / name, name).experiment_id for name in ("one", "two"))
    night = found[2].night_id
    for target, who in itertools.product((night, "suite:nightly", two), ("vision.administer", "farm.view", "none")):
        assert "may not" in (told := web.act("create link", who, target=target)) or "there is no" in told, (target, who)
    nights = ",".join(_with_blocks(lab.ledger, each, n) for n, each in enumerate(two.split(",")))
    for target in ("suite:none", f"{two},one", f"{two.partition(',')[0]},{night}", f"{night},{night}"):
        assert "/public/" not in web.act("create link", "farm.operate", target=target)
    ways = [
        lab.ask("POST /acts/create-link", lab.own, {"target": each})[2]["result"]["path"]
        for each in (night, "suite:nightly", two, nights)
    ]
    status, _, text = web.send(ways[0], "")
    assert status == 200 and ("worse" in text) and not re.search(r'(href|action)="/', text)
    assert main(["compare", *two.split(","), "--state", str(lab.state), "--html", str(tmp_path / "a.html")]) in (0, 1)
    shown, printed = web.send(ways[2], "")[2], (tmp_path / "a.html").read_text()
    assert re.sub("<[^>]*>", "", printed) == re.sub("<[^>]*>", "", shown) and 'href="/' not in shown
    own = ["compare", *nights.split(","), "--state", str(lab.state), "--html", str(tmp_path / "b.html")]
    assert main(own) in (0, 1)
    shown, printed = web.send(ways[3], "")[2], (tmp_path / "b.html").read_text()
    assert re.sub("<[^>]*>", "", printed) == re.sub("<[^>]*>", "", shown) and nights.partition(",")[2] in shown
    status, headers, badge = web.send(f"{ways[1]}/badge.svg", "")
    assert status == 200 and "nightly: did not run" in "".join(ElementTree.fromstring(badge).itertext())
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin" and "<script" not in badge
    _, _, feed = web.send(f"{ways[1]}/feed.atom", "")
    entries = ElementTree.fromstring(feed).findall("{http://www.w3.org/2005/Atom}entry")
    titles = [each.findtext("{http://www.w3.org/2005/Atom}title") or "" for each in entries]
    assert len(titles) == 4 and "did not run" in titles[0] and "all same" in titles[-1]
    assert ("worse" in titles[1]) is bool(worse) and "<b> & ]]>" in "".join(entries[0].itertext())
    assert [web.send(f"{ways[0]}{of}", "")[0] for of in ("/badge.svg", "/feed.atom")] == [404, 404]
    assert night in web.ask("/links", "farm.view")[2] and night not in web.ask("/links", "vision.administer")[2]
    lab.ledger.submit("of-speech", make.many(1, name="of-speech"), [make.job("of-speech")], by="x", project="speech")
    across = ",".join(chance.sample([lab.experiments["somebody"][0], "of-speech"], 2))
    for who in ("vision.administer", "speech.administer"):
        told = web.act("create link", who, target=across)
        assert "may not" in told or "there is no" in told, (who, told)
    told = web.act("create link", "farm.operate", target=across)
    for who, sees in (("farm.view", True), ("vision.administer", False), ("speech.administer", False)):
        assert (told.split()[4] in web.ask("/links", who)[2]) is sees, who
        assert (across in str(lab.ask("GET /links?most=500", lab.tokens[who])[2])) is sees, who
        assert "leads nowhere" not in web.act("revoke link", who, target=told.split()[4])
    assert "leads nowhere" in web.act("revoke link", "farm.operate", target=told.split()[4])


def _with_blocks(ledger: Ledger, experiment: str, number: int) -> str:
    """Return a night of another suite, with this one experiment."""
    part = ledger.experiment(experiment).experiment
    wave = Wave(kind="first", part=part.name, experiment_id=experiment, number=0, blocks=6)
    suite = made.SUITE.model_copy(update={"name": "other"})
    own: dict[str, Any] = {"night_id": f"other@{number}", "suite": suite, "parts": (part,), "waves": (wave,)}
    night = made.judged(number, [], ("d",), **own)
    made.kept(ledger, [night])
    return night.night_id


def test_attempts_are_bounded_by_name_and_address_and_remembered_in_little(seed: int) -> None:
    chance, now = random.Random(seed), [0.0]
    attempts = Attempts(lambda: now[0])
    assert not any(attempts.begin("anna", str(chance.random())) for _ in range(BY_NAME.most))
    assert 0.0 < attempts.begin("anna", "elsewhere") <= BY_NAME.forgotten_s and not attempts.begin("bob", "elsewhere")
    now[0] += BY_NAME.forgotten_s
    assert attempts.begin("anna", "elsewhere") == 0.0 < attempts.begin("anna", "elsewhere")
    attempts.went_well("anna", "elsewhere")
    assert attempts.begin("anna", "elsewhere") == 0.0
    assert not any(attempts.begin(f"n{number}", "there") for number in range(BY_ADDRESS.most))
    assert attempts.begin("berta", "there") > 0.0 == attempts.begin("berta", "here")
    for number in range(MOST_KEYS):
        attempts.begin(f"m{number}", str(number))
    assert len(attempts._failed) == MOST_KEYS


def test_who_tries_too_often_is_told_to_wait(web: Web) -> None:
    form = {"name": "nobody at all", "password": "guess"}
    found = [web.send("/sign-in", "", form)[0] for _ in range(BY_NAME.most + 1)]
    assert found == [403] * BY_NAME.most + [429]
    status, headers, text = web.send("/sign-in", "", form)
    assert status == 429 and int(headers["Retry-After"]) > 0 and "too often" in text
