"""Simulate months of nights, and count how often `farm history` finds a change, and whom it blames.

    python -m benchmarks.statistics.histories -o benchmarks/results/DATE-MACHINE-histories.json

The simulator shares nothing with the product, nor with its virtual phones: the level of a cell is its truth, times the
day of the phone, times what a cell's own day does, times what happens in the scenario, times noise; the candidate runs
on the same phone in the same night, so that it shares the phone's day and heat, but for a tenth of its sensitivity. The
candidate is a new build every night, so that it could be blamed at any time. What is judged is the product's
`orchestrator.analysis.history.history`, once with every night so far, as a person sees it in the morning.

scenarios   candidate: one of its cells is slower on one phone from one night on; device: an update of one phone's
            system slows all its cells; farm: a change of the host slows all phones; heat: the room warms up over weeks,
            each phone and cell as sensitive as it is; battery: one phone's battery ages within four nights, and from
            then on it throttles; quiet: nothing happens
counted     near: the change is told with its night at most one off, once eight nights have followed; next: the same
            by the morning after the second night; what the told changes were put down to; in how many of the cells,
            and in how many histories, the candidate is blamed for what it did not do
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulations import keep, options, spread
from orchestrator.analysis.history import Change, Figure, History, Night, Trail, history

SEED = 1
PHONES, CELLS, NIGHTS = 6, 4, 40
AFTER = 8
DAY_S = 86400.0
SLOW = 2
"""Number of the phone to which something happens."""
DEVICE_OF = f"phone-{SLOW}"


@dataclass(frozen=True)
class World:
    """Standard deviations, as shares."""

    noise: float = 0.003
    """The noise of the median over a night's blocks of one side."""
    day: float = 0.01
    """The deviation of a phone from night to night, on all its cells and both sides."""
    cell_day: float = 0.003
    """The same of one cell alone, on both sides."""
    apart: float = 0.1
    """The difference of the candidate's sensitivity to heat from the baseline's, as a share."""
    tails: bool = False
    """True if noise has outliers (Student's t with three degrees of freedom)."""


@dataclass(frozen=True)
class Scenario:
    name: str
    size: float = 0.0
    """The share by which something is slower in the end."""


SCENARIOS = (
    Scenario("quiet"),
    *(Scenario("candidate", size) for size in (0.02, 0.03, 0.05)),
    *(Scenario("device", size) for size in (0.03, 0.05)),
    *(Scenario("farm", size) for size in (0.03, 0.05)),
    *(Scenario("heat", size) for size in (0.05, 0.15)),
    *(Scenario("battery", size) for size in (0.05, 0.30)),
)


class Row(NamedTuple):
    scenario: Scenario
    tails: bool
    sides: int


ROWS = [
    Row(scenario, tails, sides)
    for tails in (False, True)
    for sides in (2, 1)
    for scenario in SCENARIOS
    if sides == 2 or scenario.name != "candidate"
]


class Counts(NamedTuple):
    """The counts of one history."""

    cells: int
    """The cells to which something happens."""
    near: int
    next: int
    blamed: Counter[str]
    """Changes that were told, by cause."""
    of_event: Counter[str]
    """The blames of the cells and the night to which something happened (quiet and drifts: none)."""
    wrong: int
    """Cells with a change put down to the candidate that is not its own."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(__doc__, SEED)
    parser.add_argument("--histories", type=int, default=200, help="of each row")
    given = parser.parse_args(argv)
    keep(rows(given.seed, given.histories, given.jobs), given)


def rows(seed: int, number: int, jobs: int) -> Iterator[dict[str, object]]:
    tasks = [(row, (seed, place, drawn)) for place, row in enumerate(ROWS) for drawn in range(number)]
    judged = spread(counted, tasks, jobs)
    for row in ROWS:
        found = list(islice(judged, number))
        cells = max(1, sum(each.cells for each in found))
        yield {
            "scenario": row.scenario.name,
            "size": row.scenario.size,
            "tails": row.tails,
            "sides": row.sides,
            "histories": number,
            "near": sum(each.near for each in found) / cells,
            "next": sum(each.next for each in found) / cells,
            "blamed": dict(sum((each.blamed for each in found), Counter())),
            "of_event": dict(sum((each.of_event for each in found), Counter())),
            "cells_blaming": sum(each.wrong for each in found),
            "histories_blaming": sum(bool(each.wrong) for each in found),
        }


def counted(task: tuple[Row, tuple[int, ...]]) -> Counts:
    (scenario, tails, sides), seed = task
    random = np.random.default_rng(seed)
    at = int(random.integers(14, NIGHTS - AFTER))
    nights, figures = simulated(random, World(tails=tails), scenario, sides, at)
    whole, early = seen(nights, figures, at + AFTER), seen(nights, figures, at + 2)
    twins = {(trail.device, trail.cell): trail for trail in early.trails}
    of_event: Counter[str] = Counter()
    cells = near = soon = 0
    for trail in whole.trails:
        if _concerned(scenario, trail):
            cells += 1
            causes = [change.cause for place, change in _changes(whole, trail, scenario) if abs(place - at) <= 1]
            of_event.update(causes)
            near += bool(causes)
            twin = twins[trail.device, trail.cell]
            soon += any(abs(place - at) <= 1 for place, _ in _changes(early, twin, scenario))
    wrong = {
        (trail.device, trail.cell) for trail, change in whole.changes
        if change.cause == "candidate" and not (scenario.name == "candidate" and _concerned(scenario, trail))
    }  # fmt: skip
    blamed = Counter(change.cause for _, change in whole.changes)
    return Counts(cells, near, soon, blamed, of_event, len(wrong))


def _concerned(scenario: Scenario, trail: Trail) -> bool:
    """Return whether a step happens to a cell."""
    if scenario.name == "candidate":
        return trail.cell == "cell-0" and trail.device == DEVICE_OF
    return scenario.name == "farm" or (scenario.name == "device" and trail.device == DEVICE_OF)


def _changes(told: History, trail: Trail, scenario: Scenario) -> Iterator[tuple[int, Change]]:
    """Return the changes of the series that the scenario is about, with their places."""
    places = {night.id: place for place, night in enumerate(told.nights)}
    of = "ratio" if scenario.name == "candidate" else "level"
    return ((places[change.night], change) for change in trail.changes if change.of == of)


def seen(nights: Sequence[Night], figures: Sequence[Figure], until: int) -> History:
    """The history of the nights before `until`."""
    kept = {night.id for night in nights[:until]}
    return history("simulated", nights[:until], [figure for figure in figures if figure.night in kept])


def simulated(
    random: np.random.Generator, world: World, scenario: Scenario, sides: int, at: int
) -> tuple[list[Night], list[Figure]]:
    """`at`: the night from which on something is otherwise."""
    nights = [Night(id=f"night-{number}", at=number * DAY_S) for number in range(NIGHTS)]
    warm = np.clip((np.arange(NIGHTS) - 5) / (NIGHTS - 10), 0, 1)
    figures = []
    for phone in range(PHONES):
        day = random.normal(0, world.day, NIGHTS)
        for cell in range(CELLS):
            truth = np.exp(random.uniform(0, 4))
            sensitive, other = random.uniform(0.5, 1.5), 1 + random.normal(0, world.apart)
            own = day + random.normal(0, world.cell_day, NIGHTS)
            a, b = np.zeros(NIGHTS), np.zeros(NIGHTS)
            after = np.log1p(scenario.size) * (np.arange(NIGHTS) >= at)
            if scenario.name == "heat":
                a += scenario.size * warm * sensitive
                b += scenario.size * warm * sensitive * other
            elif scenario.name == "battery" and phone == SLOW:
                ageing = np.clip((np.arange(NIGHTS) - at) / 4, 0, 1) * scenario.size
                a += ageing * sensitive
                b += ageing * sensitive * other
            elif scenario.name == "farm" or (scenario.name == "device" and phone == SLOW):
                a += after
                b += after
            elif scenario.name == "candidate" and phone == SLOW and cell == 0:
                b += after
            levels = [np.exp(np.log(truth) + own + each + _noise(random, world)) for each in (a, b)]
            for night in range(NIGHTS):
                system = int(scenario.name == "device" and phone == SLOW and night >= at)
                facts = {"OS build": f"build-{system}", "plan": f"plan-{cell}"}
                figures.append(
                    Figure(
                        night=nights[night].id, device=f"phone-{phone}", cell=f"cell-{cell}", metric="latency",
                        unit="ms", a=float(levels[0][night]), facts_a=facts | {"agent": "released"},
                        b=float(levels[1][night]) if sides == 2 else None,
                        facts_b=facts | {"agent": f"build-{night}"} if sides == 2 else {},
                    )
                )  # fmt: skip
    return nights, figures


def _noise(random: np.random.Generator, world: World) -> np.ndarray:
    if world.tails:
        return random.standard_t(3, NIGHTS) / np.sqrt(3) * world.noise
    return random.normal(0, world.noise, NIGHTS)


if __name__ == "__main__":
    run_command(main)
