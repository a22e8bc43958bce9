"""An act: somebody does something to the farm, in one transaction with its row in the audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from redis import Redis

from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.ledger.incoming.imports import Last
from orchestrator.model.errors import FarmError, SetupError
from orchestrator.model.foreign import check_text
from orchestrator.model.rights import WHOLE, Actor, Place, Right, refusal
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
    name: str = ""
    """The act's name, as the audit has it."""
    effects: list[Callable[[], object]] = field(default_factory=list)
    """Calls that follow the commit, in Redis: they may be done again, or be rebuilt."""

    @property
    def ledger(self) -> Ledger:
        """Raises SetupError."""
        return self.site.ledger

    def row(self, result: Done) -> Last:
        """Return what stores the row of the audit with the transaction of a connection; of None with this thread's."""
        return lambda into: self.ledger.audit.note(self.actor, self.name, result.on, result.text, into=into)

    def inventory(self) -> Inventory | None:
        """Return what hosts announce; None where no farm runs."""
        try:
            return Inventory(self.site.redis())
        except FarmError:
            return None


class Done:
    """The result of an act: the base of all, which are frozen dataclasses."""

    TOLD_ONCE: ClassVar[str] = ""
    """The field that is told this once, to who acts alone, and is in no audit: the text of a token, a link's way."""

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

    @property
    def shows(self) -> dict[str, str]:
        """Return what a page shows beside these words: a `picture` (PNG, base64) or a `text`."""
        return {}

    @property
    def secret(self) -> str:
        """Return what is told this once."""
        return str(getattr(self, self.TOLD_ONCE)) if self.TOLD_ONCE else ""

    @property
    def answer(self) -> dict[str, Any]:
        """Return what a door for programs tells."""
        return {"did": self.did, "ok": self.ok, "said": self.lines, "result": self.data}


class Settled(Done):
    """The result of an act that is well where nothing was left to do; a field of its dataclass is `is_new`."""

    is_new: bool

    @property
    def did(self) -> bool:
        return self.is_new

    @property
    def ok(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return [f"{'' if self.did else 'nothing to do: '}{self.says}"]

    @property
    def says(self) -> str:
        """Return how things are now, whether this act or an earlier one made them so."""
        raise NotImplementedError


R = TypeVar("R", bound=Done)
Given = Mapping[str, Any]
"""Arguments of an act by name."""
At = Callable[[Ledger, Actor, Given], Iterable[Place]]
"""Tells what an act is done to. Raises UnknownName."""
Beside = Callable[[Given], tuple[Right, str] | None]
"""Tells the right that an act takes beside its own, by what it is given, and why."""


@dataclass(frozen=True)
class Act:
    """An act, as doors offer it."""

    name: str
    does: Callable[..., Done]
    """The act itself, with its site and its actor as first arguments."""
    needs: Right
    once: bool
    """True if it may be asked for once, under a key."""
    beside: Beside | None = None
    routed: bool = True
    """True if the API offers it, where its parameters have a form."""


class DoneBefore(Exception):
    """It was done before under this key: nothing is done now, and `answer` is what was answered."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__("done before")
        self.answer = answer


ACTS: dict[str, Callable[..., Done]] = {}
"""All acts, by the name that the audit has."""
RIGHTS: dict[str, Act] = {}
"""The same, each with the right that it takes: there is no act without one."""
ON_PAGES: dict[str, Callable[..., Done]] = {}
"""All acts that pages offer, by the same name."""


def act(
    needs: Right,
    *,
    at: At | None = None,
    once: bool = False,
    beside: Beside | None = None,
    routed: bool = True,
    apart: bool = False,
) -> Callable[[Callable[Concatenate[Acting, P], R]], Callable[Concatenate[Site, Actor, P], R]]:
    """Register an act with the right that it takes. `at`: what it is done to, where its right is of a project or of
    owners. `routed`: the API has it. `apart`: it stores its row itself, in the last of its transactions. Where it or
    its row fails, nothing of it is stored, and no effect follows."""

    def registered(does: Callable[Concatenate[Acting, P], R]) -> Callable[Concatenate[Site, Actor, P], R]:
        name = does.__name__.replace("_", " ")
        own = signature(does)

        @wraps(does)
        def done(site: Site, actor: Actor, /, *args: P.args, **options: P.kwargs) -> R:
            for given in (*args, *options.values()):
                check_text(*([given] if isinstance(given, str) else given if isinstance(given, tuple | list) else ()))
            acting = Acting(site, actor, name)
            if actor.grants != WHOLE:
                bound = own.bind(acting, *args, **options)
                bound.apply_defaults()
                _let(acting, RIGHTS[name], at, bound.arguments)
            with nullcontext() if site.store is None or apart else site.store.together():
                _not_again(acting)
                result = does(acting, *args, **options)
                if result.did and site.store is not None and not apart:
                    acting.row(result)(None)
                if actor.once is not None:
                    acting.ledger.people.answers.keep(actor.who, actor.once, json.dumps(result.answer))
            for effect in acting.effects:
                effect()
            return result

        ACTS[name] = done
        RIGHTS[name] = Act(name, done, needs, once, beside, routed)
        return done

    return registered


def _let(acting: Acting, asked: Act, at: At | None, given: Given) -> None:
    """Raise NotAllowed where who acts has no right to it, and UnknownName where they may not even know that there is
    what they name; both leave a row."""
    actor, ledger = acting.actor, acting.ledger
    places = list(at(ledger, actor, given)) if at is not None else []
    why = asked.needs.why_not(actor.who, actor.grants, places)
    if not why and asked.beside is not None and (more := asked.beside(given)) is not None:
        right, reason = more
        lacks = right.why_not(actor.who, actor.grants)
        why = f"{reason}, and {lacks}" if lacks else ""
    if not why:
        return
    first = next((each for key, each in given.items() if key != "acting"), "")
    target = some([*map(str, first)]) if isinstance(first, tuple | list) else str(getattr(first, "name", first))[:200]
    ledger.audit.note(actor, asked.name, target, f"refused: {why}", refused=True)
    hidden = places if at is of_targets else ()
    raise refusal(actor.who, actor.grants, why, what=target, doing=asked.name, hidden=hidden)


def _not_again(acting: Acting) -> None:
    if acting.actor.once is not None:
        before = acting.ledger.people.answers.given(acting.actor.who, acting.actor.once)
        if before is not None:
            raise DoneBefore(json.loads(before))


def of_targets(ledger: Ledger, _: Actor, given: Given) -> list[Place]:
    """Return the places of the experiments, jobs and nights that an act names, several of them by commas."""
    named = given.get("targets", given.get("target", ()))
    parts = named.split(",") if isinstance(named, str) else named
    return [ledger.place_of(each) for each in parts]


def of_project(_: Ledger, actor: Actor, given: Given) -> list[Place]:
    """Return the project that an act names, in which who acts owns what comes of it."""
    return [Place(given["project"], actor.who)]


def on_pages(done: Callable[P, R]) -> Callable[P, R]:
    """Let pages offer an act: a form's `target` is its first parameter, a field of their name each further one."""
    name = done.__name__.replace("_", " ")
    ON_PAGES[name] = done
    return done


def some(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:most]) + f" and {len(names) - most} more" * (len(names) > most)
