"""The answers that the farm gives: what pages and `--json` show, of the projects that who asks may view."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.acts.access.links import seen_by
from orchestrator.acts.access.storage import GIB, Storage
from orchestrator.acts.submission.labels import read_labels
from orchestrator.answers import Ending, Story, all_in_brief, how_far, story_of, when_it_ends
from orchestrator.answers.hosts import HostView, views
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import AuditRow, ExperimentRow, Hold, Ledger, ListedJob
from orchestrator.ledger.said.eligible_devices import devices_for_work
from orchestrator.ledger.said.history import DeviceWas
from orchestrator.model.device import Device
from orchestrator.model.errors import ModelFileError, ServiceDown
from orchestrator.model.people import Role
from orchestrator.model.rights import Link, Person, Place, Project, Right, Token, Webhook
from orchestrator.report.content import Content

from .asked import Asked
from .engines import engines as engines
from .reading import First, Most, Name, Page, Word, cut, page, read
from .shared import Shared

SEES = Right(Role.VIEW)
SEES_ANYTHING = Right(Role.VIEW, of="any")
ADMINISTERS = Right(Role.ADMINISTER, of="farm")
ENDS = Shared[Ending](20.0)
"""Ends of experiments: thinking about them takes a twentieth of a core."""
STORED = Shared[dict[str, int]](20.0)
"""Bytes of projects: adding them up takes a twentieth of a core, too."""
MOST_TOLD = 1000
"""Jobs that are not over, of those that are told one by one."""
JOB_WORDS = "held waiting placed running ok invalid failed lost killed cancelled"


class Me(BaseModel):
    """The person who asks, and their roles."""

    model_config = ConfigDict(frozen=True)

    name: str
    farm: Role | None
    projects: dict[str, Role]


class Brief(BaseModel):
    """An experiment in a list."""

    model_config = ConfigDict(frozen=True)

    experiment: str
    """Its id."""
    name: str
    project: str
    submitted_at: float
    submitter: str
    origin: str
    """The lab in which it was measured, in words; empty: here."""
    finished: bool
    jobs: int
    counts: dict[str, int]
    """Jobs by state or, where done, by outcome."""
    waiting: list[dict[str, Any]]
    """The reasons why jobs wait, each with their number."""
    stopped: list[dict[str, Any]]
    """Strategies that ended without what they were asked for."""


@dataclass(frozen=True)
class ProjectNow(Project):
    """A project with what it uses of its terms."""

    used_hours: float = 0.0
    """The phone-hours of this week."""
    waiting: int = 0
    """The jobs that wait."""
    stored_gib: float = 0.0
    """The storage that its files and records take."""

    @property
    def uses(self) -> dict[str, str]:
        """Return what it uses of what it may: `3.2 of 40`, or alone where there is no limit."""
        used = {
            "hours": (f"{self.used_hours:.1f}", self.terms.phone_hours),
            "jobs that wait": (f"{self.waiting}", self.terms.most_waiting),
            "GiB kept": (f"{self.stored_gib:.2f}", self.terms.storage_gib),
        }
        return {what: f"{use} of {most:g}" if most else use for what, (use, most) in used.items()}


def _of_named(asked: Asked, given: dict[str, Any]) -> Iterable[Place]:
    return [asked.ledger.place_of(given["id"])]


@read("/me", SEES_ANYTHING)
def me(asked: Asked) -> Me:
    """Tell who asks, and their roles."""
    return Me(name=asked.actor.who, farm=asked.actor.grants.farm, projects=dict(asked.actor.grants.projects))


@read("/experiments", SEES_ANYTHING)
def experiments(
    asked: Asked, first: First = 0, most: Most = 50, project: Word = "", submitter: Word = ""
) -> Page[Brief]:
    """List the experiments of the projects that who asks may view, the newest first."""
    seen = asked.actor.grants.visible
    wanted = seen if not project else {project} if seen is None else seen & {project}
    rows, total = asked.ledger.listed.experiments(first, most, projects=wanted, submitter=submitter)
    return page(briefs(asked, rows), first, total)


def briefs(asked: Asked, rows: Sequence[ExperimentRow]) -> list[Brief]:
    """Tell experiments in brief."""
    return [Brief(**each) for each in all_in_brief(asked.ledger, asked.reasons(), rows)]


@read("/experiments/{id}", SEES, _of_named)
def experiment(asked: Asked, id: Name) -> dict[str, Any]:
    """Tell how far an experiment is: its jobs by state, why they wait, when it ends, what did not go well."""
    row = asked.ledger.experiment(id)
    ends = partial(when_it_ends, asked.ledger, row.id)
    found = how_far(
        asked.ledger, row, asked.reasons(), lambda: ENDS.of((asked.sources, row.id), lambda: ends(_devices(asked)))
    )
    return found.data(asked.ledger.listed.unfinished(row.id, MOST_TOLD))


@read("/experiments/{id}/content", SEES, _of_named)
def content(asked: Asked, id: Name, layers: bool = False) -> Content:
    """Tell all that a report of an experiment shows. `layers`: layer by layer, too."""
    from orchestrator.report.gathering import gather

    row = asked.ledger.experiment(id)
    try:
        labels = labels_of(asked, row)
    except ModelFileError:
        labels = None
    return gather(asked.ledger, row, labels, layers=layers)


@read("/experiments/{id}/unlabelled", SEES, _of_named)
def unlabelled(asked: Asked, id: Name) -> str:
    """Tell why results are without the shares that are right; empty: they are not, or there is no set."""
    try:
        labels_of(asked, asked.ledger.experiment(id))
    except ModelFileError as e:
        return f"the shares that are right are left out: {e}"
    return ""


@read("/experiments/{id}/results", SEES, _of_named)
def results(asked: Asked, id: Name) -> dict[str, Any]:
    """Tell an experiment's results, with their intervals, as `farm results --json` prints them."""
    from orchestrator.report.export import as_data

    return as_data(content(asked, id=id, layers=True))


@read("/experiments/{id}/jobs", SEES, _of_named)
def jobs(
    asked: Asked,
    id: Name,
    first: First = 0,
    most: Most = 50,
    word: Annotated[str, Field(pattern=f"^({JOB_WORDS.replace(' ', '|')}|)$", description="State or outcome.")] = "",
) -> Page[ListedJob]:
    """List the jobs of an experiment in order of submission."""
    row = asked.ledger.experiment(id)
    found = asked.ledger.listed.jobs(row.id, (word,) if word else (), first, most)
    return page(list(found.rows), first, found.total)


@read("/jobs/{id}", SEES, _of_named)
def job(asked: Asked, id: Name) -> Story:
    """Tell the story of a job: every attempt with its device, and why it waits."""
    return story_of(asked.ledger, id, asked.reasons())


@read("/devices", SEES_ANYTHING)
def devices(asked: Asked, first: First = 0, most: Most = 50) -> Page[Device]:
    """List the devices as placement sees them, by serial."""
    found = sorted(_devices(asked, needed=True) or (), key=lambda each: each.serial)
    return cut(found, first, most)


@read("/hosts", SEES_ANYTHING)
def hosts(asked: Asked, first: First = 0, most: Most = 50) -> Page[HostView]:
    """List the hosts: whether each gets work, and if not why."""
    return cut(_hosts(asked), first, most)


@read("/hosts/closed", SEES_ANYTHING)
def closed_hosts(asked: Asked) -> list[str]:
    """Tell which hosts get no work, why, and what to do. One that is silent is no news: its devices are."""
    held = [(each.serial, f"{each.reason}; {each.remedy}") for each in asked.ledger.standing.quarantined_hosts()]
    held += [(each.name, f"{each.state}; {each.why}") for each in _hosts(asked) if each.why and each.state != "silent"]
    return [f"host {name} gets no work: {why}" for name, why in held]


def _hosts(asked: Asked) -> list[HostView]:
    """Nobody announces anything without a running farm."""
    try:
        announced = Inventory(asked.sources.redis()).hosts()
    except ServiceDown:
        announced = []
    return views(announced, asked.ledger.standing.hosts(), asked.ledger.running())


@read("/audit", ADMINISTERS)
def audit(
    asked: Asked, first: First = 0, most: Most = 50, who: Word = "", act: Word = "", refused: bool | None = None
) -> Page[AuditRow]:
    """List who has done what, or was refused, the newest first."""
    kept = asked.ledger.audit
    rows = kept.newest(most, first=first, who=who, act=act, refused=refused)
    return page(rows, first, kept.count(who=who, act=act, refused=refused))


@read("/people", ADMINISTERS)
def people(asked: Asked, first: First = 0, most: Most = 50) -> Page[Person]:
    """List the people of the farm with their roles, those that left among them."""
    found = asked.ledger.people.every()
    return cut(found, first, most)


@read("/webhooks", ADMINISTERS)
def webhooks(asked: Asked, first: First = 0, most: Most = 50) -> Page[Webhook]:
    """List the addresses that are told what ends, each with what it was told last; never their keys."""
    found = asked.ledger.people.webhooks.every()
    return cut(found, first, most)


@read("/projects", SEES_ANYTHING)
def projects(asked: Asked, first: First = 0, most: Most = 50) -> Page[ProjectNow]:
    """List the projects that who asks may view, with their members, their terms, and what they use of them."""
    return cut(projects_now(asked.ledger, asked.site().settings.state, asked.actor.grants.visible), first, most)


def projects_now(ledger: Ledger, state: Path, seen: frozenset[str] | None) -> list[ProjectNow]:
    """Return projects by name, these or (None) all."""
    hours = defaultdict[str, float](float)
    for account, each in ledger.people.used(time.time()).items():
        hours[account.project] += each.week_s / 3600
    every = [each for each in ledger.people.projects() if seen is None or each.name in seen]
    names = tuple(each.name for each in every)
    waiting = ledger.people.waiting(names)
    stored = STORED.of((state, names), lambda: Storage.all_used(ledger, state, names))
    return [
        ProjectNow(**vars(each), used_hours=hours[each.name], waiting=waiting.get(each.name, 0),
                   stored_gib=stored[each.name] / GIB)
        for each in every
    ]  # fmt: skip


@read("/reservations", SEES_ANYTHING)
def reservations(asked: Asked, first: First = 0, most: Most = 50) -> Page[Hold]:
    """List who has which devices, now and later: holds, reservations and pools, by device and begin."""
    found = asked.ledger.standing.reservations()
    return cut(found, first, most)


@read("/inventory", SEES_ANYTHING)
def inventory(asked: Asked, first: First = 0, most: Most = 50, serial: Word = "") -> Page[DeviceWas]:
    """List what the devices, or one of them, were and since when, the newest first of each."""
    found = asked.ledger.standing.history(serial)
    return page(found[first : first + most], first, len(found))


@read("/links", SEES_ANYTHING)
def links(asked: Asked, first: First = 0, most: Most = 50) -> Page[Link]:
    """List the public links to what is in the projects that who asks may view; never their secrets."""
    return cut([link for link, _ in seen_by(asked.ledger, asked.actor.grants.visible)], first, most)


@read("/tokens", SEES_ANYTHING)
def tokens(asked: Asked, first: First = 0, most: Most = 50) -> Page[Token]:
    """List one's own tokens, or all for whoever administers the farm; never their texts."""
    all_of_them = not ADMINISTERS.why_not(asked.actor.who, asked.actor.grants)
    kept = asked.ledger.people.tokens
    found = kept.every() if all_of_them else kept.of(asked.actor.who)
    return cut(found, first, most)


def _devices(asked: Asked, *, needed: bool = False) -> list[Device] | None:
    """Return the devices; None where no farm runs. Raises ServiceDown where they are `needed`."""
    try:
        inventory = Inventory(asked.sources.redis())
        return devices_for_work(inventory.devices(), inventory.hosts(), asked.ledger, asked.actor.grants.visible)
    except ServiceDown:
        if needed:
            raise
        return None


def labels_of(asked: Asked, row: ExperimentRow) -> tuple[int, ...] | None:
    """Return the right classes of an experiment's set; None where it has none. Raises ModelFileError where they cannot
    be read."""
    dataset = row.experiment.workload.dataset
    if dataset is None or dataset.labels_sha256 is None:
        return None
    return read_labels(Artifacts(asked.site().settings.state).path(dataset.labels_sha256))
