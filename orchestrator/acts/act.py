"""An act: somebody does something to the farm, in one transaction with its row in the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from redis import Redis

from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Actor, Ledger
from orchestrator.model.errors import FarmError, SetupError
from orchestrator.system.config import Settings

P = ParamSpec("P")


@dataclass(frozen=True)
class PutBack:
    """The changes put back on one device, and those that were not."""

    serial: str
    supply: bool
    """True if its supply was switched on."""
    settings: tuple[str, ...]
    left: str
    """The settings that could not be put back, and why; empty: all is well."""

    @property
    def text(self) -> str:
        done = ", ".join((*("supply switched on",) * self.supply, *self.settings)) or "nothing was put back"
        return f"{self.serial}: {done}" + f"; left: {self.left}" * bool(self.left)


class Phones(Protocol):
    """The phones of this machine, as acts change them."""

    def left_behind(self) -> Sequence[str]:
        """Return the devices on which a crash has left something changed."""
        ...

    def restore(self, serials: Iterable[str]) -> Sequence[PutBack]:
        """Put back what was left changed."""
        ...

    def let_be(self, serial: str) -> bool:
        """Take a device as it is; return whether anything was left changed. Raises DeviceBusy."""
        ...


@dataclass(frozen=True)
class Site:
    """The farm on which somebody acts."""

    settings: Settings
    store: Ledger | None
    """None on a host of another farm: it can restore its phones, and leaves no row."""
    redis: Callable[[], Redis]
    """Raises ServiceDown where no farm runs."""
    phones: Phones | None = None

    @property
    def ledger(self) -> Ledger:
        """Raises SetupError."""
        if self.store is None:
            raise SetupError("this machine has no ledger", remedy="do it on the machine of the farm")
        return self.store


@dataclass(frozen=True)
class Acting:
    """An act that is being done."""

    site: Site
    actor: Actor
    effects: list[Callable[[], object]] = field(default_factory=list)
    """Calls that follow the commit, in Redis: they may be done again, or be rebuilt."""

    @property
    def ledger(self) -> Ledger:
        """Raises SetupError."""
        return self.site.ledger

    def inventory(self) -> Inventory | None:
        """Return what hosts announce; None where no farm runs."""
        try:
            return Inventory(self.site.redis())
        except FarmError:
            return None


class Done:
    """The result of an act: the base of all, which are frozen dataclasses."""

    @property
    def on(self) -> str:
        """Return what it was done to, for the audit: the first field, unless a result says otherwise."""
        return str(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    @property
    def lines(self) -> list[str]:
        """Sentences for people."""
        raise NotImplementedError

    @property
    def did(self) -> bool:
        """True if anything was changed: else the audit has no row."""
        return True

    @property
    def ok(self) -> bool:
        """True if all is done that was asked for."""
        return self.did

    @property
    def data(self) -> dict[str, Any]:
        """Return the result for programs."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @property
    def text(self) -> str:
        return "; ".join(self.lines)


R = TypeVar("R", bound=Done)
ACTS: dict[str, Callable[..., Done]] = {}
"""All acts, by the name that the audit has."""
ON_PAGES: dict[str, Callable[..., Done]] = {}
"""All acts that pages offer, by the same name."""


def act(does: Callable[Concatenate[Acting, P], R]) -> Callable[Concatenate[Site, Actor, P], R]:
    """Register an act. Where it or its row fails, nothing of it is stored, and no effect follows."""
    name = does.__name__.replace("_", " ")

    @wraps(does)
    def done(site: Site, actor: Actor, /, *args: P.args, **options: P.kwargs) -> R:
        acting = Acting(site, actor)
        with nullcontext() if site.store is None else site.store.together():
            result = does(acting, *args, **options)
            if result.did and site.store is not None:
                site.store.audit.note(actor, name, result.on, result.text)
        for effect in acting.effects:
            effect()
        return result

    ACTS[name] = done
    return done


def on_pages(done: Callable[P, R]) -> Callable[P, R]:
    """Let pages offer an act: a form's `target` is its first parameter, a field of their name each further one."""
    name = done.__name__.replace("_", " ")
    ON_PAGES[name] = done
    return done


def some(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:most]) + f" and {len(names) - most} more" * (len(names) > most)
