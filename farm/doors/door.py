"""The acts and answers of one farm, wherever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from farm.access import COMMAND_LINE
from orchestrator.model.errors import UnknownName

if TYPE_CHECKING:
    from dashboards.answers.answers import Brief
    from dashboards.answers.reading import Page
    from farm.endpoints import Login
    from orchestrator.acts import Done
    from orchestrator.answers.fleet import Snapshot
    from orchestrator.model.record import Record
    from orchestrator.system.config import Settings

T = TypeVar("T")
Does = Callable[..., "Done"]


class Door(Protocol):
    """A farm that is open. Its methods raise FarmError."""

    def ask(self, answer: Callable[..., T], **given: Any) -> T:
        """Return an answer of `dashboards.answers`."""
        ...

    def every(self, answer: Callable[..., Page[T]], **given: Any) -> list[T]:
        """Return all items of a list."""
        ...

    def act(self, does: Does, *args: Any, **options: Any) -> Done:
        """Do an act of `orchestrator.acts`."""
        ...

    def submit(self, file: Path, *, again: bool, project: str) -> Done:
        """Submit the experiment of a file, with the files that it names."""
        ...

    def find(self, name: str) -> Brief:
        """Return the experiment of this id, of this name (the newest one), or the newest of all for `latest`."""
        ...

    def looks(self, experiment_id: str | None, limit_s: float | None) -> Iterator[Snapshot]:
        """Look again and again, until an experiment, or all, is over, or for so long."""
        ...

    def table(self, experiment_id: str, form: str, what: str | None, file: IO[bytes]) -> tuple[str, int]:
        """Write raw figures, one a row; what a row is, and how many there are."""
        ...

    def report(self, experiment_id: str) -> tuple[str, int]:
        """Return the HTML report, and how many results it has."""
        ...

    def records(self, experiment_id: str, /) -> list[Record]:
        """Return all raw records."""
        ...

    def pruned(self, experiment_id: str, /) -> Mapping[str, int]:
        """Return how many raw records the ledger has no more, by the archive that holds them."""
        ...


@contextmanager
def open_door(
    state: Path | None, login: Login | None = None, by: str = COMMAND_LINE, *, running: bool = False
) -> Iterator[Door]:
    """Open the farm that a command uses: that of the folder `state`, that of `login`, or as settings and log-in say.
    `running`: it must run.

    Raises SetupError, ServiceDown.
    """
    from farm.access import connect, open_ledger, settings_of, user_by
    from farm.endpoints import chosen

    settings = settings_of(state)
    if (login := login or chosen(settings, state)) is not None:
        from .there import There, opened

        with opened(login) as line:
            yield There(line)
        return
    if running:
        connect(settings)
    from .here import Here

    with open_ledger(settings) as ledger:
        yield Here(settings, ledger, user_by(by))


def unserved(state: Path | None) -> Settings | None:
    """Return the settings of a folder of this machine on which no farm runs; None: some farm answers."""
    from farm.access import settings_of

    settings = settings_of(state)
    return None if settings.redis_url or settings.server else settings


def experiment_or_job(door: Door, name: str) -> str:
    """Return an experiment's id by its id or name; anything else is taken as a job's id."""
    try:
        return door.find(name).experiment
    except UnknownName:
        return name
