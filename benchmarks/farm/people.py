"""The farm while people use it: how long their reads and submissions take, and what they add to a job's overhead.

    python -m benchmarks.farm.people --phones 50 --people 50 --submitters 10 --jobs 1000 [-o raw.json]

A whole farm of virtual phones, as `overhead` has it. No-op jobs go over two of them, one after the other, in short
turns without people and with them (A B B A A B B A); the other phones are held, so that what people submit waits. Each
person follows an experiment's progress (a stream) and reads a page or an answer of the API every `--every` seconds;
each submitter sends one experiment in the first half of a turn, which is cancelled after it. People are threads of
other processes on the same cores, each with a token. Times are of a clock, from the request to the last byte.
A person's machine does not wait for the farm's cores: who reads has a process alone, in the real-time class where that
is allowed. A connection that is cut off is a status of 0. What people add to the parts of a job's overhead is the mean
over pairs of turns that follow each other, of the logarithm of the ratio of their medians, with Student's interval.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import psutil

from benchmarks.command_line import command, run_command, tell
from benchmarks.farm.overhead import Desk, Spread, Timed, no_op
from benchmarks.farm.running import RunningFarm, running_farm
from benchmarks.farm.serving import ahead_of_others
from dashboards.web.access import Access
from orchestrator.analysis.student_t import half_width
from orchestrator.coordination.client import connect
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.model.people import Role, Use
from orchestrator.spec.expansion.expand import expand

API = "/api/v1"
PAGES = ("/", "/queue", "/experiments", "/experiments/followed")
ANSWERS = ("/experiments", "/devices", "/hosts", "/experiments/followed", "/experiments/followed/jobs", "/me")
OK = 200
SUBMISSION = "submission"
FREE = 2
"""Phones that are not held."""
GONE_S = 120.0
SPANS: Mapping[str, Callable[[Timed], float]] = {
    "submit_to_claim": lambda each: each.to_claim_ns,
    "claim_to_agent": lambda each: each.before_ns - each.to_claim_ns,
    "agent_to_ledger": lambda each: each.after_ns,
    "overhead": lambda each: each.before_ns + each.after_ns,
}
"""The parts of a job's overhead, and all of it."""


@dataclass(frozen=True)
class Turn:
    """Jobs one after the other, with or without people beside."""

    people: bool
    processor_s: dict[str, float]
    """Seconds of the processor by part of the farm; of the people, too."""
    jobs: list[Timed]

    def told(self) -> dict[str, object]:
        ms = {name: asdict(Spread.of([of(each) for each in self.jobs])) for name, of in SPANS.items()}
        return {"people": self.people, "processor_s": self.processor_s, "jobs": len(self.jobs), "ms": ms}


def ask(port: int, method: str, path: str, token: str, body: object = None, key: str = "") -> tuple[float, int, bytes]:
    """Return seconds, status and body."""
    shown, _, cookie = token.partition(" ")
    headers = {"Authorization": f"Bearer {shown}", "Content-Type": "application/json", "Cookie": cookie}
    if key:
        headers["Idempotency-Key"] = key
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GONE_S)
    began = time.monotonic()
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        status, text = reply.status, reply.read()
        return time.monotonic() - began, status, text
    except ConnectionError as e:
        return time.monotonic() - began, 0, str(e).encode()
    finally:
        connection.close()


def act(port: int, owner: str, deed: str, /, **given: object) -> Any:
    """Return an act's result. Raises RuntimeError where it was refused."""
    _, status, text = ask(port, "POST", f"{API}/acts/{deed}", owner, given)
    if status != 200:
        raise RuntimeError(f"{deed}: {status} {text[:300]!r}")
    return json.loads(text)["result"]


class Crowd:
    """People in a process of their own, until its standard input ends; then what they saw, as JSON.

    Those without experiments read; the others follow, and the first of them submit.
    """

    def __init__(
        self, port: int, tokens: Sequence[str], experiments: Sequence[Any], every_s: float, within_s: float
    ) -> None:
        self._port, self._every_s, self._within_s = port, every_s, within_s
        self._over = threading.Event()
        self._ahead = False
        self._seen: list[tuple[str, float, int]] = []
        does = self._follows if experiments else self._reads
        self._threads = [threading.Thread(target=does, args=(each,), daemon=True) for each in tokens]
        writers = zip(tokens, experiments, strict=False)
        self._threads += [threading.Thread(target=self._submits, args=each, daemon=True) for each in writers]

    def run(self) -> dict[str, Any]:
        for each in self._threads:
            each.start()
        print("begun", flush=True)
        sys.stdin.read()
        self._over.set()
        for each in self._threads:
            each.join(5.0)
        return {"seen": self._seen, "ahead": self._ahead}

    def _reads(self, token: str) -> None:
        self._ahead = ahead_of_others()
        draw = random.Random(token)
        while not self._over.wait(draw.uniform(0.0, 2 * self._every_s)):
            path = draw.choice((*PAGES, *(API + each for each in ANSWERS)))
            self._note(path, ask(self._port, "GET", path, token))

    def _submits(self, token: str, experiment: Any) -> None:
        if not self._over.wait(random.uniform(0.0, self._within_s)):
            body = {"project": "shared", "experiment": experiment}
            self._note(SUBMISSION, ask(self._port, "POST", f"{API}/acts/submit", token, body, experiment["name"]))

    def _follows(self, token: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=GONE_S)
        headers = {"Authorization": f"Bearer {token.partition(' ')[0]}"}
        while not self._over.wait(1.0):  # one address has so many connections, and no more
            with suppress(OSError, http.client.HTTPException):
                connection.request("GET", f"{API}/experiments/followed/progress", headers=headers)
                reply = connection.getresponse()
                while not self._over.is_set() and reply.readline():
                    pass
            connection.close()

    def _note(self, what: str, found: tuple[float, int, bytes]) -> None:
        took_s, status, text = found
        self._seen.append((what, took_s, status))
        if status != OK:
            print(what, status, text[:300], file=sys.stderr, flush=True)


def _let_in(port: int, owner: str, people: int, ledger: Ledger) -> list[str]:
    """Return a token for each person, and the cookie of a session of theirs."""
    act(port, owner, "add-project", name="shared")
    tokens = []
    for number in range(people):
        name = f"person-{number}"
        act(port, owner, "add-person", name=name)
        act(port, owner, "grant-role", name=name, role="operate", project="shared")
        session = ledger.people.tokens.make(name, Role.ADMINISTER, "", "", None, Use.SESSION)[1]
        tokens.append(f"{act(port, owner, 'create-token', name=name)['token']} {Access(owner).cookie}={session}")
    return tokens


def measured(chosen: argparse.Namespace) -> dict[str, object]:
    """Return overheads turn by turn, their growth, and the times of reads and submissions."""
    turns: list[Turn] = []
    told: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="people-") as folder,
        running_farm(Path(folder) / "state", chosen.phones) as farm,
        Ledger(farm.settings.ledger) as ledger,
        connect(farm.settings) as redis,
    ):
        owner, port = (farm.settings.state / "pages.token").read_text().strip(), farm.pages_port
        phones = [each for each in Inventory(redis).devices() if each.facts.kind == "phone"]
        free, held = ([each.facts.serial for each in some] for some in (phones[:FREE], phones[FREE:]))
        act(port, owner, "hold", serials=held, note="so that jobs wait", alone=True)
        tokens = _let_in(port, owner, chosen.people, ledger)
        desk = Desk(farm, ledger, Inventory(redis), most=FREE)
        followed = no_op("followed", blocks=chosen.jobs)
        ledger.submit("followed", followed, expand(followed, "followed", phones[FREE:]).jobs, project="shared")
        desk.alone(len(held))  # warm
        for turn in range(chosen.turns):
            what = ([], _experiments(free, turn, chosen)) if turn % 4 in (1, 2) else ()
            crowds = [Popen(_command(port, tokens, each, chosen), stdin=PIPE, stdout=PIPE, text=True) for each in what]
            for each in crowds:
                assert each.stdout is not None
                each.stdout.readline()  # they have begun
            turns.append(_turn(farm, desk, turn, chosen.seconds, crowds))
            told += [json.loads(each.communicate("", timeout=GONE_S)[0]) for each in crowds]
            for name in ledger.listed.projects(f"many-{turn}-"):
                ledger.cancel(name)
            print(turns[-1].told(), flush=True)
    return {
        "turns": [each.told() for each in turns],
        "growth_percent": growth(turns),
        "readers_in_real_time_class": any(each["ahead"] for each in told),
        **_table([tuple(row) for each in told for row in each["seen"]]),
    }


def _turn(farm: RunningFarm, desk: Desk, turn: int, seconds: float, crowds: Sequence[Popen[str]]) -> Turn:
    found: list[Timed] = []
    people = [psutil.Process(each.pid) for each in crowds]
    before, of_people = farm.processor_s(), sum(sum(each.cpu_times()[:2]) for each in people)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found += desk.alone(FREE, f"turn-{turn}-{len(found)}")
    spent_s = {part: round(after_s - before[part], 2) for part, after_s in farm.processor_s().items()}
    spent_s["people"] = round(sum(sum(each.cpu_times()[:2]) for each in people) - of_people, 2)
    return Turn(bool(crowds), spent_s, found)


def growth(turns: Sequence[Turn]) -> dict[str, dict[str, float]]:
    """Return what people add to each part of the overhead, in percent, with the ends of an interval of 95 %."""
    pairs = [sorted(pair, key=lambda each: each.people) for pair in zip(turns[::2], turns[1::2], strict=False)]
    told = {}
    for name, of in SPANS.items():
        medians = [[statistics.median(map(of, each.jobs)) for each in pair] for pair in pairs]
        ratios = [math.log(with_people / alone) for alone, with_people in medians]
        middle, half = statistics.mean(ratios), half_width(statistics.stdev(ratios), len(ratios) - 1)
        half /= math.sqrt(len(ratios))
        ends = {"low": middle - half, "growth": middle, "high": middle + half}
        told[name] = {end: round(100 * math.expm1(value), 1) for end, value in ends.items()}
    return told


def _experiments(free: list[str], turn: int, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what a turn's submitters send; it wants the phones that are held."""
    where = " and ".join(['kind == "phone"', *(f'serial != "{each}"' for each in free)])
    many = [no_op(f"many-{turn}-{number}", blocks=chosen.jobs) for number in range(chosen.submitters)]
    sent = [each.model_dump(mode="json", exclude_defaults=True) for each in many]
    for each in sent:
        each["devices"]["where"] = where
    return sent


def _command(port: int, tokens: list[str], experiments: list[dict[str, Any]], chosen: argparse.Namespace) -> list[str]:
    told = {"port": port, "tokens": tokens, "experiments": experiments, "every_s": chosen.every}
    told["within_s"] = chosen.seconds / 2
    return [sys.executable, "-m", "benchmarks.farm.people", "--crowd", json.dumps(told)]


def _table(seen: Sequence[tuple[str, float, int]]) -> dict[str, object]:
    """Milliseconds by what was asked; statuses that are no success are counted."""
    by: dict[str, list[float]] = {}
    for what, took_s, _ in seen:
        for name in (what, *(["any read"] if what != SUBMISSION else [])):
            by.setdefault(name, []).append(took_s * 1e9)
    rows = {name: {"count": len(of), **vars(Spread.of(of))} for name, of in sorted(by.items()) if len(of) > 1}
    return {"ms": rows, "refused": sum(status != OK for *_, status in seen)}


def main() -> None:
    made = command(__doc__)
    made.add_argument("--phones", type=int, default=50)
    made.add_argument("--people", type=int, default=50)
    made.add_argument("--submitters", type=int, default=10)
    made.add_argument("--jobs", type=int, default=1000, help="of a submission")
    made.add_argument("--turns", type=int, default=16, help="four are two without people and two with them")
    made.add_argument("--seconds", type=float, default=12.0, help="of a turn")
    made.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between two reads of a person")
    made.add_argument("--crowd", type=json.loads, default=None, help=argparse.SUPPRESS)
    chosen = made.parse_args()
    if chosen.crowd:
        print(json.dumps(Crowd(**chosen.crowd).run()))
        return
    tell(measured(chosen), chosen.output)


if __name__ == "__main__":
    run_command(main)
