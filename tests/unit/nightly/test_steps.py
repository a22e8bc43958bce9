"""A night's next steps: over any course of events it ends, on time, tells once, and does nothing twice."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.comparison import Compared
from orchestrator.model.experiment import Side, Sides
from orchestrator.nightly import Night, NightRow, Suite, Wave
from orchestrator.nightly.plan import bare, not_run
from orchestrator.nightly.schedule import MOST_MISSED, due, following
from orchestrator.nightly.steps import (
    Begin,
    Cancel,
    Judge,
    Over,
    Row,
    Submit,
    Tell,
    View,
    Wait,
    first_waves,
    next_step,
    patience_s,
    rounds_of,
)
from tests.unit.orchestrator import make

BUDGET_S = 1000.0
CELLS = (("A", "base"), ("A", "next")), (("B", "base"), ("B", "next"))
DAY_S = 86400.0


def suite(**more: Any) -> Suite:
    fields = {"name": "s", "experiments": ("x.yaml",), "sides": Sides(candidate=Side()), "budget": BUDGET_S}
    return Suite.model_validate({**fields, **more})


def night(**more: Any) -> Night:
    """Due at 0, and begun."""
    found = bare(suite(**more), "s.yaml", 0.0, scheduled=True)  # type: ignore[arg-type]
    found = found.model_copy(update={"began_at": 0.0, "parts": (make.experiment(name="x"),)})
    return found.model_copy(update={"waves": first_waves(found)})


def row(verdict: str, number: int, needs: int | None = None) -> Row:
    compared = Compared(
        device=CELLS[number][0][0], source="virtual", network="n", backend="cpu", precision="fp32", options={},
        metric="latency", unit="ms", margin=0.02, verdict=verdict, needs_blocks=needs,  # type: ignore[arg-type]
    )  # fmt: skip
    return Row(NightRow(part="x", compared=compared), CELLS[number])


VERDICTS = ("same", "different", "missing", "unknown", "unknown")


class World:
    """A ledger and devices that do as chance has it; a keeper may die after any act, before it could write."""

    def __init__(self, seed: int) -> None:
        self.chance, self.now = random.Random(seed), 0.0
        self.night = night()
        self.open: dict[str, bool] = {}
        self.told: list[float] = []
        self.judged_at: float | None = None

    def view(self) -> View:
        unfinished = tuple(name for name, is_open in self.open.items() if is_open)
        drawn = [(self.chance.choice(VERDICTS), n, self.chance.choice((None, 1, 7, 500))) for n in (0, 1)]
        table = [row(*each) for each in drawn] if not unfinished else []
        stuck = ("job",) if unfinished and self.chance.random() < 0.1 else ()
        ready = frozenset(self.chance.choice(("", "A", "AB")))
        return View(self.now, frozenset(self.open), unfinished, stuck, ready, self.chance.random() < 0.5, table)

    def turn(self) -> bool:
        """One step; whether the night is over."""
        view = self.view()
        step = next_step(self.night, view)
        assert step == next_step(self.night, view)
        if self.chance.random() < 0.2 and not isinstance(step, Submit | Cancel | Tell):
            return False  # killed before it could write
        match step:
            case Over():
                return True
            case Wait():
                self.pass_time()
            case Submit(wave):
                assert not self.night.is_judged and self.now < self.night.ends_at
                assert wave in self.night.waves and wave.experiment_id not in self.open
                self.open[wave.experiment_id] = True
            case Cancel(targets):
                for name in targets if targets != ("job",) else tuple(self.open):
                    self.open[name] = False
            case Begin(waves):
                self.check(waves)
                self.night = self.night.model_copy(update={"waves": (*self.night.waves, *waves)})
            case Judge():
                assert not any(self.open.values())
                self.judged_at = self.now
                self.night = self.night.model_copy(update={"outcome": "complete"})
            case Tell():
                self.told.append(self.now)
                self.night = self.night.model_copy(update={"ended_at": self.now})
        return False

    def check(self, waves: tuple[Wave, ...]) -> None:
        kinds = [wave.kind for wave in self.night.waves]
        assert waves and not any(self.open.values()), "nothing new while something is open"
        assert len({wave.experiment_id for wave in (*self.night.waves, *waves)}) == len(kinds) + len(waves)
        for wave in waves:
            assert wave.kind in ("more", "repeat") and "repeat" not in kinds, "the repetition is the last"
            assert wave.blocks >= 1 and wave.cells
            for cell in wave.cells if wave.kind == "more" else ():
                assert rounds_of(self.night, "x", cell) + wave.blocks <= self.night.suite.most_rounds

    def pass_time(self) -> None:
        self.now += self.chance.uniform(1, BUDGET_S / 4)
        for name in self.open:
            self.open[name] = self.open[name] and self.chance.random() < 0.5


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_every_night_ends_on_time_and_is_told_once(seed: int) -> None:
    world = World(seed)
    for _ in range(400):
        if world.turn():
            break
    else:
        pytest.fail("it does not end")
    assert len(world.told) == 1 and world.judged_at is not None
    assert world.judged_at <= world.night.ends_at + BUDGET_S / 4, "one turn late at most"


def test_unknown_cells_alone_get_more_blocks_until_there_are_enough() -> None:
    started = night()
    table = [row("unknown", 0, needs=3), row("same", 1)]
    over = View(100.0, frozenset({started.waves[0].experiment_id}), ready=frozenset("AB"), table=table)
    step = next_step(started, over)
    assert isinstance(step, Begin)
    (wave,) = step.waves
    assert (wave.kind, wave.blocks, wave.cells) == ("more", 4, CELLS[0]), "rounded to whole periods of the order"
    step = next_step(started, View(over.now, over.submitted, table=[row("unknown", 0, needs=300)]))
    assert isinstance(step, Begin) and step.waves[0].blocks == started.suite.rounds, "not more than it has"
    most = started.model_copy(update={"suite": suite(most_rounds=started.suite.rounds + 7)})
    step = next_step(most, View(over.now, over.submitted, table=[row("unknown", 0, needs=300)]))
    assert isinstance(step, Begin) and step.waves[0].blocks == 4, "no part of a period"
    full = started.model_copy(update={"suite": suite(most_rounds=started.suite.rounds + 3)})
    step = next_step(full, View(over.now, over.submitted, table=[row("unknown", 0, needs=300)]))
    assert isinstance(step, Judge)
    hopeless = next_step(started, View(over.now, over.submitted, table=[row("unknown", 0)]))
    assert isinstance(hopeless, Judge), "no number of blocks settles it"


def test_what_changed_is_repeated_in_time_before_it_is_told() -> None:
    started = night()
    mine = frozenset({started.waves[0].experiment_id})
    table = [row("different", 0), row("unknown", 1, needs=5)]
    late = next_step(started, View(0.8 * BUDGET_S, mine, table=table))
    assert isinstance(late, Begin)
    assert [(wave.kind, wave.cells) for wave in late.waves] == [("repeat", CELLS[0])]
    repeated = started.model_copy(update={"waves": (*started.waves, *late.waves)})
    assert isinstance(next_step(repeated, View(0.85 * BUDGET_S, mine, table=table)), Submit)
    both = mine | {late.waves[0].experiment_id}
    assert isinstance(next_step(repeated, View(0.9 * BUDGET_S, both, table=table)), Judge)


def test_a_night_waits_for_its_phones_for_a_while() -> None:
    started = night().model_copy(update={"expected": ("A", "B")})
    limit_s = patience_s(started)
    assert isinstance(next_step(started, View(1.0, ready=frozenset("A"))), Wait)
    assert isinstance(next_step(started, View(1.0, ready=frozenset("AB"), probing=True)), Wait)
    assert isinstance(next_step(started, View(1.0, ready=frozenset("AB"))), Submit)
    assert isinstance(next_step(started, View(limit_s, ready=frozenset("A"))), Submit), "without the one that is away"


def test_a_night_that_did_not_run_is_told_too() -> None:
    assert isinstance(next_step(not_run(night(), "why"), View(0.0)), Tell)


def test_missed_nights_are_found_and_one_may_still_begin() -> None:
    start = due("0 * * * *", 0.0, 1.0, 600.0)
    assert start.begin is None and start.missed == ()
    hours = [3600.0 * (n + 1) for n in range(5)]
    found = due("0 * * * *", 0.0, hours[3] + 299, 600.0)
    assert (found.missed, found.begin) == (tuple(hours[:3]), hours[3])
    late = due("0 * * * *", 0.0, hours[3] + 301, 600.0)
    assert (late.missed, late.begin) == (tuple(hours[:4]), None), "half of its budget is over"
    long_ago = due("0 * * * *", 0.0, 3600.0 * 1000, 600.0)
    assert len(long_ago.missed) == MOST_MISSED - 1 and long_ago.begin == 3600.0 * 1000
    assert long_ago.forgotten == 1000 - MOST_MISSED


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 5 * DAY_S), min_size=1, max_size=6), st.floats(60, DAY_S))
def test_whenever_it_is_looked_every_night_is_told_or_begun_once(looks: list[float], budget_s: float) -> None:
    known: list[float] = []
    for now in sorted(looks):
        found = due("0 */12 * * *", max(known, default=0.0), now, budget_s)
        known += [*found.missed, *([found.begin] if found.begin is not None else [])]
    moment, every = following("0 */12 * * *", 0.0), []
    while moment <= max(looks):
        every.append(moment)
        moment = following("0 */12 * * *", moment)
    assert known == every
