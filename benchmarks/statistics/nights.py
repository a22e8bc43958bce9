"""Simulate nights of a farm, and count how often `farm compare` is right.

    python -m benchmarks.statistics.nights -o benchmarks/results/DATE-MACHINE-nights.json

The simulator shares nothing with the product, nor with its virtual phones: a block's time is the truth of its cell,
times the day of the phone, times the heat of the night, times what the block before left of its own, times noise whose
neighbours are alike. What is judged is the product's `orchestrator.analysis.comparison.compare`. The night is 10 phones
with 3 cells each.

designs   paired: both sides in every round of one night (ABBA BAAB), or by ABBA alone, as it was before; ten nights:
          one night beside the ten before it; two nights: one night beside another, which only holds while nights differ
          by no more than is assumed
counted   alarms: nights without any difference in which a row says `different`; found: nights in which a phone that is
          slower by 5 or 2 % is told; wrong same: rows with a true ratio at the margin that say `same`; reached: rows
          without a difference that say `same`; cover: rows whose 95 % interval holds the truth
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulations import keep, options, spread
from orchestrator.analysis.comparison import Rules, SideRow, compare
from orchestrator.model.device import Source

PHONES, CELLS = 10, 3
HOUR_S, DAY_S = 3600.0, 86400.0
SLOW = 3
"""Number of the phone that is slower."""
SLOWER = (0.05, 0.02)
MARGIN = 0.02


@dataclass(frozen=True)
class World:
    """The behaviour of phones. Shares of the time."""

    noise: float = 0.01
    """Standard deviation of a block."""
    shape: str = "normal"
    alike: float = 0.6
    """Correlation of a phone's neighbouring blocks."""
    day: float = 0.01
    """Standard deviation of a phone from night to night."""
    cell_day: float = 0.002
    """The same of one cell alone."""
    heat: float = 0.02
    """The share by which a phone is slower when it is warm."""
    left: float = 0.0
    """The share by which a block is slower after many of the heaviest cell than after many of the lightest one; half of
    what there was is left from block to block."""
    gross: float = 0.0
    """This share of blocks is slower by some 30 %."""
    throttled: float = 0.0
    """The share of its nights in which a phone is slower by 10 to 30 % from some block on to the end."""


@dataclass(frozen=True)
class Design:
    name: str
    before: int
    """Nights of side A; 0: both sides in one night."""
    rounds: int
    turns: int = 4
    """The rounds after which their order is that of the first again: ABBA BAAB, or with 2 ABBA alone."""


PAIRED = Design("paired", 0, 12)
ABBA = Design("paired, ABBA alone", 0, 12, turns=2)
TEN = Design("ten nights", 10, 6)
TWO = Design("two nights", 1, 12)
DESIGNS = (PAIRED, ABBA, TEN, TWO)


def shaped(random: np.random.Generator, shape: str, count: int) -> np.ndarray:
    """Independent values of mean 0 and standard deviation 1."""
    if shape == "skewed":
        return (random.lognormal(0, 0.5, count) - np.exp(0.125)) / np.sqrt((np.exp(0.25) - 1) * np.exp(0.25))
    if shape == "outliers":
        return random.standard_t(3, count) / np.sqrt(3)
    if shape == "two levels":
        return np.where(random.random(count) < 0.8, -0.5, 2.0)
    return random.standard_normal(count)


def alike(random: np.random.Generator, world: World, count: int) -> np.ndarray:
    """Noise of a phone's blocks in their order: half of the variance of each block is its own where it is shaped."""
    steps = random.standard_normal(count) * np.sqrt(1 - world.alike**2)
    walk = np.empty(count)
    state = random.standard_normal()
    for place, step in enumerate(steps):
        state = world.alike * state + step
        walk[place] = state
    if world.shape == "normal":
        return walk * world.noise
    return (walk + shaped(random, world.shape, count)) / np.sqrt(2) * world.noise


def ordered(rounds: int, turns: int, sides: int, cells: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Round, side and cell of each block of a phone."""
    for turn in range(rounds):
        exchanged = turn % turns >= 2
        order = [(side, cell) for cell in cells for side in range(sides)[:: -1 if exchanged else 1]]
        yield from ((turn, *place) for place in (order[::-1] if turn % 2 else order))


def left_over(places: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """The heat that each block finds, where one of many blocks of the heaviest cell is one."""
    found, heat = [], 0.5
    for _, _, cell in places:
        found.append(heat)
        heat = (heat + cell / (CELLS - 1)) / 2
    return np.array(found)


def night(
    random: np.random.Generator, world: World, number: int, design: Design, sides: Sequence[Sequence[float]]
) -> list[list[SideRow]]:
    """The rows of each side. `sides`: the true ratio of each phone; all sides run in this night."""
    found: list[list[SideRow]] = [[] for _ in sides]
    places = list(ordered(design.rounds, design.turns, len(sides), range(CELLS)))
    left = 1 + world.left * left_over(places)
    for phone in range(PHONES):
        noise = alike(random, world, len(places))
        day = random.standard_normal() * world.day
        own_day = random.standard_normal((len(sides), CELLS)) * (0 if len(sides) > 1 else world.cell_day)
        warm = world.heat * (1 - np.exp(-np.arange(len(places)) / (0.3 * len(places))))
        noise = noise + harm(random, world, len(places))
        for place, (turn, side, cell) in enumerate(places):
            truth = (10.0 + 7 * cell + phone) * sides[side][phone]
            value = truth * (1 + day + own_day[side, cell]) * (1 + warm[place]) * left[place] * (1 + noise[place])
            at = number * DAY_S + place * 60.0
            found[side].append(row(phone, cell, number, turn, at, float(value)))
    return found


def harm(random: np.random.Generator, world: World, count: int) -> np.ndarray:
    """Return what goes wrong grossly, by blocks in their order; shares of the time."""
    slow = np.abs(random.normal(0, 0.3, count)) * (random.random(count) < world.gross)
    if random.random() < world.throttled:
        slow += random.uniform(0.1, 0.3) * (np.arange(count) >= random.integers(count))
    return slow


def row(phone: int, cell: int, number: int, turn: int, at: float, value: float) -> SideRow:
    return SideRow(
        device=f"phone-{phone}",
        source=Source.PHONE,
        network=f"network-{cell}",
        backend="opencl",
        precision="fp32",
        night=f"night-{number}/phone-{phone}",
        round=turn,
        started_at=at,
        ended_at=at + 30,
        values={"latency": value},
    )


def both_sides(
    random: np.random.Generator, world: World, design: Design, ratios: Sequence[float]
) -> tuple[list[SideRow], list[SideRow]]:
    same = [1.0] * PHONES
    if not design.before:
        a, b = night(random, world, 0, design, (same, ratios))
        return a, b
    a = [each for k in range(design.before) for each in night(random, world, k, design, (same,))[0]]
    return a, night(random, world, design.before, design, (ratios,))[0]


class Task(NamedTuple):
    """A night whose ratios and draws are its own."""

    design: Design
    world: World
    ratios: tuple[float, ...]
    seed: tuple[int, int]


class Counts(NamedTuple):
    """The counts of the rows of one night."""

    rows: int
    same: int
    covered: int
    """The rows whose interval holds a ratio of one."""
    alarm: bool
    """True if any row is different."""
    found: bool
    """True if a row of the slower phone is worse."""


def judged(task: Task) -> Counts:
    sides = both_sides(np.random.default_rng(task.seed), task.world, task.design, task.ratios)
    table = compare(*sides, Rules(margins={"latency": MARGIN}))
    different = [each for each in table if each.verdict == "different"]
    ends = [(i.low, i.high) if (i := each.interval) else (0, 2) for each in table]  # what is not told is wide
    return Counts(
        rows=len(table),
        same=sum(each.verdict == "same" for each in table),
        covered=sum(low <= 1 <= high for low, high in ends),
        alarm=bool(different),
        found=any(each.worse and each.device == f"phone-{SLOW}" for each in different),
    )


def rows(seed: int, number: int, jobs: int, designs: Sequence[Design]) -> Iterator[dict[str, object]]:
    fifth = max(20, number // 5)
    kinds = [
        (seed, [1.0] * PHONES, number),
        *((seed + 1, [1 + slower * (phone == SLOW) for phone in range(PHONES)], fifth) for slower in SLOWER),
        (seed + 2, [1 + MARGIN] * PHONES, fifth),
    ]
    lines = [(design, world) for design in designs for world in worlds(design)]
    tasks = [
        Task(design, world, tuple(ratios), (own, drawn))
        for design, world in lines for own, ratios, nights in kinds for drawn in range(nights)
    ]  # fmt: skip
    found = spread(judged, tasks, jobs, together=10)
    for design, world in lines:
        same, *slower, at_margin = (list(islice(found, nights)) for _, _, nights in kinds)
        count = sum(night.rows for night in same)
        yield {
            "design": design.name,
            **asdict(world),
            "alarms": share([night.alarm for night in same]),
            "reached": sum(night.same for night in same) / count,
            "cover": sum(night.covered for night in same) / count,
            **{
                f"found {size:.0%}": share([night.found for night in nights])
                for size, nights in zip(SLOWER, slower, strict=True)
            },
            "wrong same": sum(night.same for night in at_margin) / sum(night.rows for night in at_margin),
        }


def share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


def worlds(design: Design) -> list[World]:
    if design is TWO:
        return [World(day=0.005), World(day=0.005, alike=0.0), World(day=0.01)]
    heated = [World(noise=0.005, left=0.04), World(noise=0.005, left=0.08)]
    if design is ABBA:
        return heated
    return [
        *(heated if design is PAIRED else ()),
        *(World(shape=shape) for shape in ("normal", "skewed", "outliers", "two levels")),
        World(alike=0.0, heat=0.0),
        World(noise=0.03, day=0.02),
        World(noise=0.005),
        *(World(noise=0.007, gross=gross) for gross in (0.01, 0.05)),
        World(noise=0.007, gross=0.01, throttled=0.15),
    ]


def main() -> None:
    parser = options(__doc__, 1)
    parser.add_argument("-n", "--nights", type=int, default=1000, help="without a difference; a fifth of them with one")
    parser.add_argument("-d", "--design", choices=[each.name for each in DESIGNS], help="only this one")
    given = parser.parse_args()
    designs = [each for each in DESIGNS if given.design in (None, each.name)]
    rounds = {each.name: each.rounds for each in designs}
    keep(rows(given.seed, given.nights, given.jobs, designs), given, nights=given.nights, rounds=rounds)


if __name__ == "__main__":
    run_command(main)
