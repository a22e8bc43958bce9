"""People beside the faults: each has a token and a role in one project, reads, and submits by the client package."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, product
from math import inf
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from client import Refused
from client.line import API, Line
from dashboards.web.access import token_of
from farm import endpoints

PROJECTS = ("red", "blue")
ROLES = ("submit", "operate", "view")
PAUSE_S = (0.5, 2.0)
"""The shortest and the longest pause of a person between two requests."""
LIMIT_S = 120.0
"""The time for which a person who has a submission under way goes on asking for its answer."""


Spec = Callable[[str], dict[str, Any]]


@dataclass
class Heard:
    """The answers that all people got."""

    answers: Counter[str] = field(default_factory=Counter)
    """Method, route and status -> how often."""
    accepted: dict[str, int] = field(default_factory=dict)
    """Experiment that somebody was told is accepted -> its jobs."""
    projects: dict[str, str] = field(default_factory=dict)
    """The same experiment -> its project."""
    wrong: list[str] = field(default_factory=list)
    """Reads that told of another project, or did not know what is there; submissions without an answer."""


class Person:
    """Somebody with a role in one project, who submits so many experiments."""

    def __init__(self, name: str, project: str, role: str, left: int, heard: Heard, seed: int) -> None:
        self.name, self._project, self._role, self.left, self._heard = name, project, role, left, heard
        self._draw, self._key = random.Random(f"{seed} {name}"), uuid4().hex

    def live(self, reach: Callable[[], Line], spec: Spec, stop: threading.Event) -> None:
        """Read and submit until `stop`, and until each submission has an answer. `reach` raises Refused."""
        give_up_at = inf
        while (not stop.is_set() or self.left) and time.monotonic() < give_up_at:
            if stop.is_set():
                give_up_at = min(give_up_at, time.monotonic() + LIMIT_S)
            try:
                line = reach()
                self._submit(line, spec) if self.left and self._draw.random() < 0.5 else self._read(line)
            except Refused:
                pass  # its status was noted
            except Exception as e:
                self._expect(False, repr(e))
            (time.sleep if stop.is_set() else stop.wait)(self._draw.uniform(*PAUSE_S))
        self._expect(not self.left, f"{self.left} submissions have no answer")

    def _submit(self, line: Line, spec: Spec) -> None:
        """The same request with the same key, until it has an answer: it is done once."""
        asked = spec(f"{self.name}-{self.left}")
        try:
            done = line.act("submit", once=self._key, experiment=asked, project=self._project)
        except Refused as e:
            if e.cause not in ("service_down", "key_taken"):
                self._key = uuid4().hex
            raise
        self.left, self._key = self.left - 1, uuid4().hex
        self._heard.projects[done.result["experiment"]] = self._project
        self._heard.accepted[done.result["experiment"]] = done.result["jobs"]

    def _read(self, line: Line) -> None:
        known = [*self._heard.projects.items()]
        match self._draw.choice(("me", "experiments", "projects", *["one"] * bool(known))):
            case "me":
                self._expect(line.get("/me")["projects"] == {self._project: self._role}, "has other roles")
            case "experiments":
                told = {each["experiment"]: each["project"] for each in line.items("/experiments")}
                own = {name for name, project in known if project == self._project}
                self._expect({*told.values()} <= {self._project}, f"is told of {told}")
                self._expect(own <= told.keys(), f"is not told of {own - told.keys()}")
            case "projects":
                seen = [each["name"] for each in line.items("/projects")]
                self._expect(seen == [self._project], f"sees the projects {seen}")
            case _:
                name, project = self._draw.choice(known)
                try:
                    line.get(f"/experiments/{name}")
                    self._expect(project == self._project, f"reads {name} of {project}")
                except Refused as e:
                    self._expect(project != self._project or e.cause != "unknown_name", f"cannot read {name}")

    def _expect(self, holds: bool, what: str) -> None:
        if not holds:
            self._heard.wrong.append(f"{self.name} of {self._project}: {what}")


@contextmanager
def people(state: Path, count: int, submissions: int, seed: int, spec: Spec) -> Iterator[Heard]:
    """Let so many people use a farm. Those who may submit do it so many times, of what `spec` makes of names; they
    leave at the end, when each has an answer."""
    heard, stop, threads = Heard(), threading.Event(), list[threading.Thread]()
    if count:
        owner = Line(endpoints.pages_of(state), token_of(state))
        for project in PROJECTS:
            owner.act("add project", name=project)
    for number, (role, project) in zip(range(count), cycle(product(ROLES, PROJECTS)), strict=False):
        one = Person(f"{role}-{number}", project, role, submissions * (role != "view"), heard, seed)
        owner.act("add person", name=one.name)
        owner.act("grant role", name=one.name, role=role, project=project)
        reach = _reach(state, owner.act("create token", name=one.name).result["token"], heard)
        threads.append(threading.Thread(target=one.live, args=(reach, spec, stop), name=one.name))
    for each in threads:
        each.start()
    try:
        yield heard
    finally:
        stop.set()
        for each in threads:
            each.join()


def _reach(state: Path, token: str, heard: Heard) -> Callable[[], Line]:
    """Return a function for the line to the farm, which has another address after a power cut."""

    def note(reply: httpx.Response) -> None:
        words = reply.request.url.path.removeprefix(f"{API}/").split("/")
        route = "/".join(["experiments", "ID"] if words[0] == "experiments" and words[1:] else words)
        heard.answers[f"{reply.request.method} {route} {reply.status_code}"] += 1

    lines = dict[str, Line]()

    def reach() -> Line:
        if not (address := endpoints.pages_of(state)):
            raise Refused("the farm is away", cause="service_down")
        if address not in lines:
            lines[address] = Line(address, token)
            lines[address]._http.event_hooks = {"response": [note]}
        return lines[address]

    return reach
