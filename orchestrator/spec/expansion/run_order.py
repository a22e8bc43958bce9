"""Order the blocks of a device and place its canaries among them. Pure.

A round is one block of every cell. What drifts over the run (heat, charge, background work) must not fall on one cell
alone: rounds are interleaved as they are, shuffled (R. A. Fisher, "The Design of Experiments", 1935), or run in the
reverse order of the one before (ABBA: over an even number of rounds a drift that is linear in the position falls on all
cells alike). A block also leaves its heat to the next one: with ABBA alone one of two neighbours would follow a heavy
cell more often than the other. So in every second pair of rounds neighbours change places (ABBA BAAB): over four rounds
both follow and precede the same cells as often (E. J. Williams, "Experimental Designs Balanced for the Estimation of
Residual Effects of Treatments", Australian Journal of Scientific Research A 2, 1949).

A canary is one block of a small reference workload, the same plan each time: it tells whether the device has changed.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from orchestrator.model.axes import SIDE
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import BASELINE, CANDIDATE, Sampling, Workload
from orchestrator.model.job import Cell, Role

Order = Literal["interleaved", "random", "abba"]
Place = tuple[Cell, tuple[str, ...]]
"""A cell and the devices that may run its blocks."""

PERIOD = 4
"""Rounds after which `abba` has given neighbours the same places, and the same cells before them, as often."""
CANARY_NETWORK = "cifar10_quick"
"""Small enough to cost a phone well under a second, large enough to keep its cores busy for the while."""
CANARY_WARMUP = 3
CANARY_SAMPLES = 20


@dataclass(frozen=True)
class Slot:
    """One block in its place in the order."""

    cell: Cell
    candidates: tuple[str, ...]
    block: int
    role: Role = "work"


def arrange(
    places: Sequence[Place],
    rounds: Iterable[int],
    order: Order,
    seed: str,
    last: Mapping[str, Sequence[int | str | bool]] | None = None,
) -> list[Slot]:
    """The blocks of these rounds in the order in which devices run them; the same seed gives the same order.

    A device runs those that name it, in this order: a part of a shuffled (reversed) round is shuffled (reversed). Cells
    with these values of axes (`last`) come when all rounds of the others are over.
    """
    numbers, behind = list(rounds), [bool(last) and cell.has(last or {}) for cell, _ in places]
    return [
        Slot(cell, candidates, number)
        for group in (False, True)
        for number in numbers
        for cell, candidates in _one_round(
            [place for place, is_last in zip(places, behind, strict=True) if is_last is group], number, order, seed
        )
    ]


def _one_round(places: Sequence[Place], number: int, order: Order, seed: str) -> list[Place]:
    ordered = list(places)
    if order == "random":
        random.Random(f"{seed} round {number}").shuffle(ordered)
    elif order == "abba":
        if number % PERIOD >= PERIOD // 2:
            ordered = _exchanged(ordered)
        if number % 2:
            ordered.reverse()
    return ordered


def _exchanged(places: Sequence[Place]) -> list[Place]:
    """Neighbours on each device in each other's place; of an experiment with sides those of one cell."""
    found = list(places)
    by_devices: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, (_, serials) in enumerate(places):
        by_devices[serials].append(at)
    for own in by_devices.values():
        left = iter(pairwise(own))
        for first, second in left:
            if _is_pair(places[first][0], places[second][0]):
                found[first], found[second] = places[second], places[first]
                next(left, None)
    return found


def _is_pair(first: Cell, second: Cell) -> bool:
    """Return whether two cells are a pair; not so where a device lacks one side: its neighbour is another cell."""
    sides = first.options.get(SIDE.name), second.options.get(SIDE.name)
    return sides in ((None, None), (BASELINE, CANDIDATE))


def with_canaries(slots: Sequence[Slot], every: int, references: Mapping[str, Cell]) -> list[Slot]:
    """The slots with a canary before a device's first block, after every `every` blocks and after its last one.

    `references`: the canary's cell by serial; devices without one, and blocks that several devices may run, get none.
    """
    if not every:
        return list(slots)
    return list(_insert(slots, every, references))


def _insert(slots: Sequence[Slot], every: int, references: Mapping[str, Cell]) -> Iterator[Slot]:
    left = Counter(slot.candidates for slot in slots)
    run: Counter[tuple[str, ...]] = Counter()
    canaries: Counter[tuple[str, ...]] = Counter()
    for slot in slots:
        who = slot.candidates
        cell = references.get(who[0]) if len(who) == 1 else None
        if cell is not None and not run[who]:
            yield canary(cell, who, canaries[who])
            canaries[who] += 1
        yield slot
        run[who] += 1
        left[who] -= 1
        if cell is not None and (run[who] % every == 0 or not left[who]):
            yield canary(cell, who, canaries[who])
            canaries[who] += 1


def canary(cell: Cell, candidates: tuple[str, ...], number: int) -> Slot:
    """The canary of a device with this number, from 0."""
    return Slot(cell, candidates, number, "canary")


def canaries(blocks: int, every: int) -> int:
    """Number of canaries of a device with so many blocks."""
    return 1 + -(-blocks // every) if every and blocks else 0


def canary_cell(backend: Api, precision: Precision) -> Cell:
    """The reference workload on one of the device's interfaces."""
    return Cell(workload=Workload(network=CANARY_NETWORK), backend=backend, precision=precision)


def canary_sampling(sampling: Sampling) -> Sampling:
    """Return the sampling of a canary: always alike, whatever the experiment's own blocks do."""
    return Sampling(blocks=1, warmup=CANARY_WARMUP, samples=CANARY_SAMPLES, deadline=sampling.deadline)
