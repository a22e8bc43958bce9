"""Simulate whole nights of `farm nightly`, which looks at its table again and again, and count how often it is right.

    python -m benchmarks.statistics.looks -o benchmarks/results/DATE-MACHINE-looks.json

Ten phones with three cells each (`nights.py` simulates them) run both sides in every round. What is judged is the
product's `orchestrator.nightly.steps.next_step` with the product's comparison: cells that are unknown get more rounds
until they are known or have `most_rounds`, what is different is repeated. Time is never over, so that there are as many
looks as there can be.

counted   alarms: nights without any difference whose table says `different` of a row at the end; told: those in which
          the repetition finds it too; found: nights in which a phone that is slower is told; wrong same: rows with a
          true ratio at the margin that say `same`; unknown: rows that are unknown in the end; bias: by how much the
          mean ratio of a cell is off in nights without a difference, of the worst cell; looks: at the table, and
          rounds: of a cell, on average
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from math import log
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.nights import (
    CELLS,
    MARGIN,
    PHONES,
    SLOW,
    SLOWER,
    World,
    alike,
    harm,
    left_over,
    ordered,
    row,
    share,
)
from benchmarks.statistics.simulations import keep, options, spread
from orchestrator.analysis.comparison import Compared, Rules, SideRow, compare
from orchestrator.model.experiment import Side, Sides
from orchestrator.nightly import Night, NightRow, Suite
from orchestrator.nightly.night import CellOnDevice, Wave
from orchestrator.nightly.steps import Begin, Row, View, next_step

SUITE = Suite(name="simulated", experiments=("one.yaml",), sides=Sides(candidate=Side(axes={"threads": 4})))
WORLDS = (
    World(noise=0.005),
    World(noise=0.01),
    World(noise=0.01, shape="skewed"),
    World(noise=0.01, shape="outliers"),
    World(noise=0.02),
    *(World(noise=0.005, left=left) for left in (0.04, 0.08)),
    World(noise=0.007, gross=0.01),
    World(noise=0.007, gross=0.01, throttled=0.15),
)


class Told(NamedTuple):
    """One night at its end."""

    rows: tuple[Compared, ...]
    confirmed: frozenset[CellOnDevice]
    looks: int
    rounds: float


class Task(NamedTuple):
    """A night whose ratios and draws are its own."""

    world: World
    ratios: tuple[float, ...]
    seed: tuple[int, int]


class Counts(NamedTuple):
    """The counts of one night."""

    verdicts: Counter[str]
    confirmed: bool
    found: bool
    looks: int
    rounds: float
    log_ratios: tuple[float, ...]
    """The logarithms of its rows' ratios, in their order."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = options(__doc__, 1)
    parser.add_argument("-n", "--nights", type=int, default=1000, help="without a difference; a tenth of them with one")
    given = parser.parse_args(argv)
    keep(rows(given.seed, given.nights, given.jobs), given, nights=given.nights)


def rows(seed: int, number: int, jobs: int) -> Iterator[dict[str, object]]:
    few = max(10, number // 10)
    kinds = [
        (seed, [1.0] * PHONES, number),
        *((seed + 1, [1 + slower * (phone == SLOW) for phone in range(PHONES)], few) for slower in SLOWER),
        (seed + 2, [1 + MARGIN] * PHONES, few),
    ]
    tasks = [
        Task(world, tuple(ratios), (own, drawn))
        for world in WORLDS for own, ratios, nights in kinds for drawn in range(nights)
    ]  # fmt: skip
    found = spread(judged, tasks, jobs, together=10)
    for world in WORLDS:
        same, *slower, at_margin = (list(islice(found, nights)) for _, _, nights in kinds)
        yield {
            **asdict(world),
            "alarms": share([bool(night.verdicts["different"]) for night in same]),
            "told": share([night.confirmed for night in same]),
            **{
                f"found {size:.0%}": share([night.found for night in nights])
                for size, nights in zip(SLOWER, slower, strict=True)
            },
            "wrong same": share_of("same", at_margin),
            "unknown": share_of("unknown", same),
            "bias": float(np.abs(np.mean([night.log_ratios for night in same], axis=0)).max()),
            "looks": float(np.mean([night.looks for night in same])),
            "rounds": float(np.mean([night.rounds for night in same])),
        }


def share_of(verdict: str, nights: Sequence[Counts]) -> float:
    """Return a verdict's share of the rows of all nights."""
    return sum(night.verdicts[verdict] for night in nights) / sum(night.verdicts.total() for night in nights)


def judged(task: Task) -> Counts:
    night = one_night(np.random.default_rng(task.seed), task.world, task.ratios)
    verdicts: Counter[str] = Counter(each.verdict for each in night.rows)
    found = any(device == f"phone-{SLOW}" for device, _ in night.confirmed)
    log_ratios = tuple(log(each.ratio) for each in night.rows if each.ratio is not None)
    return Counts(verdicts, bool(night.confirmed), found, night.looks, night.rounds, log_ratios)


def one_night(random: np.random.Generator, world: World, ratios: Sequence[float]) -> Told:
    """Simulate a night, from the first rounds to the repetition."""
    every = tuple((f"phone-{phone}", f"network-{cell}") for phone in range(PHONES) for cell in range(CELLS))
    night = Night(
        night_id="simulated@1", suite=SUITE, file="", scheduled=False, due_at=0.0, began_at=0.0, ends_at=SUITE.budget,
        waves=(Wave(kind="first", part="one", experiment_id="one-1", number=0, blocks=SUITE.rounds, cells=every),),
    )  # fmt: skip
    day = {device: 1 + random.standard_normal() * world.day for device, _ in every}
    sides = measured(random, world, ratios, day, night.waves[0], 0)
    looks = 0
    while True:
        looks += 1
        table = compare(*(_looked_at(side, night) for side in sides), Rules())
        rows = [Row(NightRow(part="one", compared=each), ((each.device, each.network),)) for each in table]
        step = next_step(night, View(now=1.0, submitted=frozenset(w.experiment_id for w in night.waves), table=rows))
        rounds = sum(wave.blocks * len(wave.cells or ()) for wave in night.waves) / len(every)
        if not isinstance(step, Begin):
            return Told(table, frozenset(), looks, rounds)
        if step.waves[0].kind == "repeat":
            again = compare(*measured(random, world, ratios, day, step.waves[0], 0), Rules())
            return Told(table, frozenset(_confirmed(table, again)), looks, rounds)
        begun = sum(wave.blocks for wave in night.waves)
        more = measured(random, world, ratios, day, step.waves[0], begun)
        sides = [before + own for before, own in zip(sides, more, strict=True)]
        night = night.model_copy(update={"waves": (*night.waves, *step.waves)})


def _looked_at(side: Sequence[SideRow], night: Night) -> list[SideRow]:
    """Return rows with how often their cell was judged, as the product's table tells it: once for each of its waves."""
    waves = Counter(cell for wave in night.waves for cell in wave.cells or ())
    return [replace(each, look=waves[each.device, each.network]) for each in side]


def _confirmed(table: Sequence[Compared], again: Sequence[Compared]) -> Iterator[CellOnDevice]:
    """Yield cells that are confirmed, as `NightRow.confirmed` decides."""
    first = {(each.device, each.network): NightRow(part="one", compared=each) for each in table}
    for each in again:
        if first[each.device, each.network].model_copy(update={"repeated": each}).confirmed:
            yield each.device, each.network


def measured(
    random: np.random.Generator,
    world: World,
    ratios: Sequence[float],
    day: dict[str, float],
    wave: Wave,
    first_round: int,
) -> list[list[SideRow]]:
    """The rows of both sides, in the order of a night (ABBA BAAB), which begins anew with each wave."""
    found: list[list[SideRow]] = [[], []]
    for phone in range(PHONES):
        cells = [cell for cell in range(CELLS) if (f"phone-{phone}", f"network-{cell}") in (wave.cells or ())]
        places = list(ordered(wave.blocks, 4, 2, cells))
        if not places:
            continue
        left = 1 + world.left * left_over(places)
        noise = alike(random, world, len(places))
        if world.gross or world.throttled:
            noise = noise + harm(random, world, len(places))
        for place, (turn, side, cell) in enumerate(places):
            truth = (10.0 + 7 * cell + phone) * (ratios[phone] if side else 1.0) * day[f"phone-{phone}"]
            warm = 1 + world.heat * (1 - np.exp(-place / (0.3 * len(places))))
            at = first_round * 1000.0 + place * 60.0
            found[side].append(
                row(phone, cell, 0, first_round + turn, at, float(truth * warm * left[place] * (1 + noise[place])))
            )  # fmt: skip
    return found


if __name__ == "__main__":
    run_command(main)
