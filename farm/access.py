"""Open the farm of a state folder: its settings, ledger, inventory and leases, and the site of acts on it."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.model.errors import ServiceDown, SetupError, UnknownName, Unsupported

if TYPE_CHECKING:
    from orchestrator.acts import Actor, PutBack, Site
    from orchestrator.coordination.inventory import Inventory
    from orchestrator.coordination.leases import Leases
    from orchestrator.ledger import ExperimentRow, Ledger
    from orchestrator.ledger.database import Database
    from orchestrator.model.device import Device
    from orchestrator.model.experiment import Experiment
    from orchestrator.model.live.waiting import WaitReason
    from orchestrator.system.config import Settings

LATEST = "latest"
COMMAND_LINE, PAGE, NOTEBOOK, SCHEDULE = "command line", "page", "notebook", "schedule"
SHOWN_FARMS = 4


@dataclass(frozen=True)
class OwnPhones:
    """`orchestrator.acts.Phones` over this machine's adb server and journals."""

    settings: Settings

    def left_behind(self) -> Sequence[str]:
        from workers.discovery.crash_recovery import left_behind

        return left_behind(self.settings.state)

    def restore(self, serials: Iterable[str]) -> Sequence[PutBack]:
        from orchestrator.acts import PutBack
        from workers.discovery.crash_recovery import restore_devices

        return [PutBack(**asdict(each)) for each in restore_devices(self.settings, serials)]

    def let_be(self, serial: str) -> bool:
        from workers.discovery.crash_recovery import let_be

        return let_be(self.settings.state, serial)


def settings_of(state: Path | None) -> Settings:
    """Settings of a command, with the endpoints of the farm that runs on its state folder, which need not exist."""
    from farm import endpoints

    settings = endpoints.settings_for(state)
    login = endpoints.chosen(settings, state)
    return settings.model_copy(update={"server": login.url if login else ""})


def existing_settings(state: Path | None) -> Settings:
    """The same of a state folder that a farm has used. Raises SetupError, naming the farms that run, for another."""
    settings = settings_of(state)
    if not (settings.state.is_dir() or settings.redis_url or settings.ledger_url):
        raise SetupError(f"there is no state folder {settings.state}", remedy=_elsewhere(settings))
    return settings


@contextmanager
def open_ledger(settings: Settings, *, new: bool = False) -> Iterator[Ledger]:
    """The ledger; works whether or not a farm runs. `new`: make it where there is none.

    Raises SetupError, ServiceDown; Unsupported as `find_ledger` does.
    """
    from orchestrator.ledger import Ledger

    if settings.server or not new:
        find_ledger(settings)
    with Ledger(settings.ledger) as ledger:
        yield ledger


@contextmanager
def open_site(settings: Settings, *, new: bool = False) -> Iterator[Site]:
    """The site of acts on the farm; works whether or not it runs. `new`: make its ledger where there is none.

    Raises SetupError, ServiceDown.
    """
    with open_ledger(settings, new=new) as ledger:
        yield site_of(settings, ledger)


def site_of(settings: Settings, ledger: Ledger | None) -> Site:
    from orchestrator.acts import Site

    return Site(settings, ledger, lambda: connect(settings), OwnPhones(settings))


def user_by(door: str) -> Actor:
    """The user of this process, who acts by a door: whoever has the state folder may do all."""
    from orchestrator.ledger.experiments import user
    from orchestrator.model.people import Door
    from orchestrator.model.rights import WHOLE, Actor

    return Actor(user(), Door(door), WHOLE, socket.gethostname())


@contextmanager
def open_database(settings: Settings) -> Iterator[Database]:
    """The database under the ledger, for its upkeep; the same."""
    from orchestrator.ledger.database import Database

    find_ledger(settings)
    with closing(Database(settings.ledger)) as database:
        yield database


def has_ledger(settings: Settings) -> bool:
    return bool(settings.ledger_url or settings.redis_url or settings.ledger_file.exists())


def find_ledger(settings: Settings) -> None:
    """Raises SetupError where there is none, and would be made; Unsupported where the command is to use a farm
    elsewhere, whose ledger it cannot open."""
    if settings.server:
        remedy = "run it on the machine of the farm; for a farm of this machine, give `--state DIR`"
        raise Unsupported(f"this command does not work from afar, with the farm at {settings.server}", remedy=remedy)
    missing = not has_ledger(settings)
    if missing and (host := of_a_host(settings)):
        raise host
    if missing and not settings.state.is_file():
        there = f"{settings.state} holds no ledger" if settings.state.is_dir() else f"there is no {settings.state}"
        raise SetupError(f"no farm has run on this state folder: {there}", remedy=_elsewhere(settings))


def none_runs(settings: Settings) -> ServiceDown:
    """The error of a command that needs a running farm."""
    from farm import endpoints

    if endpoints.holder(settings.state) is None:
        return ServiceDown(f"no farm runs on {settings.state}", remedy=_elsewhere(settings))
    if host := of_a_host(settings):
        return host
    remedy = "try again when `farm up` says that the farm is up"
    return ServiceDown(f"the farm on {settings.state} is starting or ending", remedy=remedy)


def of_a_host(settings: Settings) -> ServiceDown | None:
    """The error of a command for the farm on a machine that is a host of another one; None where it is none."""
    from farm import endpoints
    from orchestrator.coordination.client import shown_url

    found = endpoints.read(settings.state)
    if found is None or not found.joined:
        return None
    what = f"{settings.state} belongs to a host of the farm at {shown_url(found.joined)}"
    return ServiceDown(what, remedy="run this command on the machine of that farm")


def _elsewhere(settings: Settings) -> str:
    """The farms of this user that run, by the option that names them; how to start one here."""
    from farm import endpoints

    state = settings.state

    found = [f"`--state {shlex.quote(str(each))}`" for each in endpoints.running()]
    more = f" and {len(found) - SHOWN_FARMS} more" if len(found) > SHOWN_FARMS else ""
    elsewhere = f"farms run on {', '.join(found[:SHOWN_FARMS])}{more} (or set FARM_STATE); " if found else ""
    start = f"`farm up --state {shlex.quote(str(state))}` (`--virtual 4` without phones)"
    if known := endpoints.logged_in(settings):
        elsewhere += f"you are logged in to {known.url}: for that one work in another folder, or set FARM_SERVER; "
    return f"{elsewhere}start one here in another terminal: {start}"


def connect(settings: Settings) -> Any:
    """A Redis client of the running farm. Raises ServiceDown where none runs."""
    from orchestrator.coordination import client as redis_client

    if settings.server:
        find_ledger(settings)
    if not settings.redis_url:
        raise none_runs(settings)
    return redis_client.connect(settings)


def open_inventory(settings: Settings) -> Inventory:
    """Devices and hosts of the running farm. Raises ServiceDown where none runs."""
    from orchestrator.coordination.inventory import Inventory

    return Inventory(connect(settings))


def reasons_of(settings: Settings) -> dict[str, WaitReason] | None:
    """Return why jobs wait, as the scheduler says; None where it does not, as without a running farm."""
    try:
        return open_inventory(settings).waiting()
    except ServiceDown:
        return None


def devices_of(settings: Settings, ledger: Ledger) -> list[Device] | None:
    """The devices as placement sees them; None where no farm runs."""
    from orchestrator.ledger.said.eligible_devices import devices_for_work

    try:
        inventory = open_inventory(settings)
        return devices_for_work(inventory.devices(), inventory.hosts(), ledger)
    except ServiceDown:
        return None


def open_leases(settings: Settings) -> Leases:
    from orchestrator.coordination.leases import Leases

    return Leases(connect(settings))


def labels_of(settings: Settings, experiment: Experiment) -> tuple[int, ...] | None:
    """The right class of each example of an experiment's set; None where it has none.

    Raises ModelFileError where they cannot be read.
    """
    from orchestrator.acts.submission.labels import read_labels
    from orchestrator.coordination.artifacts import Artifacts

    dataset = experiment.workload.dataset
    if dataset is None or dataset.labels_sha256 is None:
        return None
    return read_labels(Artifacts(settings.state).path(dataset.labels_sha256))


def find_experiment(ledger: Ledger, name: str) -> ExperimentRow:
    """The experiment of this id, of this name (the newest one), or the newest of all for `latest`.

    Raises UnknownName where there is none.
    """
    return ledger.experiment(pick(ledger.experiment_names(), name))


def pick(names: Mapping[str, str], name: str) -> str:
    """The same of ids with their names, in order of submission; its id."""
    for experiment_id, own in reversed([*names.items()]):
        if name in (experiment_id, own, LATEST):
            return experiment_id
    if not names:
        remedy = "submit one: `farm run experiments/first.yaml`"
        raise UnknownName(f"there is no experiment {name!r}: the ledger holds none yet", remedy=remedy)
    near = get_close_matches(name, [*names, *names.values()], n=3) or [*names][-3:]
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}? `farm status` lists all"
    raise UnknownName(f"there is no experiment {name!r} in the ledger", remedy=hint)
