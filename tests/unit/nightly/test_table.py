"""A night's findings on a cell that it looked at more than once."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from random import Random
from statistics import median

import pytest

from orchestrator.analysis.comparison import rows_of
from orchestrator.analysis.comparison.verdict import share_of
from orchestrator.analysis.history import Night as Column
from orchestrator.analysis.history import history
from orchestrator.figures import BlockFigures, times_of
from orchestrator.figures.brief import brief_of
from orchestrator.model.device import Api, Source
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Side, Sides, Workload
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome
from orchestrator.nightly import Night, Suite, Wave
from orchestrator.nightly.plan import bare
from orchestrator.nightly.summary import counts, headline
from orchestrator.nightly.table import Measured, table
from orchestrator.report.nights import morning, morning_page
from orchestrator.report.nights.morning import tiles
from tests.unit.orchestrator import make

pytestmark = pytest.mark.unit

SIDES = ("baseline", "candidate")
CELLS = {
    cell.cell_id: cell
    for side in SIDES
    for cell in [Cell(workload=Workload(network="lenet"), backend=Api.CPU, options={"side": side})]
}


def night(waves: tuple[Wave, ...]) -> Night:
    suite = Suite(name="s", experiments=("x.yaml",), sides=Sides(candidate=Side()))
    found = bare(suite, "s.yaml", 0.0, scheduled=True)  # type: ignore[arg-type]
    return found.model_copy(update={"began_at": 0.0, "parts": (make.experiment(name="x"),), "waves": waves})


def wave(number: int, rounds: int) -> Wave:
    return Wave(kind="more" if number else "first", part="x", experiment_id=f"x-{number}", number=number, blocks=rounds)


def measured(of: Wave, apart: float, start: int) -> Measured:
    """Rounds in which the candidate takes by a share more, or less, in turn."""
    blocks = []
    for turn in range(of.blocks):
        for late, cell_id in enumerate(CELLS):
            at = 100.0 * (start + turn) + 40 * late
            value = 10 * math.exp(late * apart * (-1) ** turn)
            blocks.append(
                BlockFigures(
                    experiment_id=of.experiment_id, job_id=f"{of.number}-{turn}-{late}", attempt=1, token=1,
                    cell_id=cell_id, block=turn, worker="w", serial="A", source=Source.PHONE, started_at=at,
                    ended_at=at + 30, outcome=Outcome.OK, times=times_of([value * 1e6]),
                )
            )  # fmt: skip
    return Measured(of, CELLS, tuple(blocks))


def verdict(*rounds: int) -> str:
    waves = tuple(wave(number, count) for number, count in enumerate(rounds))
    found = [measured(each, 0.027, sum(rounds[: each.number])) for each in waves]
    (row,) = table(night(waves), found)
    assert row.row.compared.blocks == (sum(rounds),) * 2
    return row.row.compared.verdict


def test_a_second_look_at_a_cell_has_less_to_spend() -> None:
    """The same rounds: looked at once they are known, looked at again after half of them they need more."""
    assert (verdict(20), verdict(10, 10), verdict(10, 30)) == ("same", "unknown", "same")


def test_all_looks_together_spend_no_more_than_one() -> None:
    assert share_of(0) == 1 and sum(share_of(look) for look in range(1, 1000)) == pytest.approx(1, abs=0.002)
    assert sum(share_of(look) for look in range(1, 1000)) < 1


FATES = ("compiles", "finds programs", "fails", "is excluded", "does not run")
MEASURED = FATES[:2]


def test_missing_is_what_should_have_been_measured_and_nothing_else(seed: int) -> None:
    """It is not what was excluded, what both sides lack, or a start from kept programs where the other compiled."""
    random = Random(seed)
    cells, blocks, exclusions, expected = {}, [], [], Counter[str]()
    for number, own in enumerate(product(FATES, repeat=2)):
        api = random.choice(list(Api))
        for side, fate in zip(SIDES, own, strict=True):
            of = Cell(workload=Workload(network="lenet"), backend=api, options={"side": side, "threads": number + 1})
            cells[of.cell_id] = of
            if fate == "is excluded":
                exclusions.append(Exclusion.of("A", of, "too large"))
            elif fate != "does not run":
                blocks += [_block(of, turn, fate, side == SIDES[1]) for turn in range(6)]
        measured = [fate in MEASURED for fate in own]
        if all(measured):
            expected["compared"] += 1 if own[0] != own[1] and api is not Api.CPU else 2
        elif any(measured):
            expected["unavailable" if "is excluded" in own else "missing"] += 2
        elif "fails" in own:
            expected["unavailable"] += 1
    found = night((wave(0, 6),))
    rows = [each.row for each in table(found, [Measured(found.waves[0], cells, tuple(blocks), tuple(exclusions))])]
    found = found.model_copy(update={"rows": tuple(rows), "outcome": "complete"})
    assert {word: counts(found)[word] for word in ("missing", "unavailable")} == {
        word: expected[word] for word in ("missing", "unavailable")
    }
    assert len(rows) == expected.total()
    lost = expected["missing"]
    assert f"{lost} rows missing" in headline(found) if lost else "missing" not in headline(found)
    told = morning(found, history("s", [Column(id=found.night_id, at=found.due_at)], []))
    assert [number for name, number, _ in tiles(told) if name.startswith("row")] == [str(lost)]
    assert morning_page(told).count('title="unavailable"') == expected["unavailable"]


def _block(of: Cell, turn: int, fate: str, late: bool) -> BlockFigures:
    at = 100.0 * turn + 40 * late
    good = fate in MEASURED
    return BlockFigures(
        experiment_id="x-0", job_id=f"{of.cell_id}-{turn}", attempt=1, token=1, cell_id=of.cell_id, block=turn,
        worker="w", serial="A", source=Source.PHONE, started_at=at, ended_at=at + 30,
        outcome=Outcome.OK if good else Outcome.FAILED, cause="" if good else "out_of_memory",
        times=times_of([1e6 + turn]) if good else None, setup_ns={"build": 10**7 + turn} if good else {},
        setup_cached=fate == "finds programs",
    )  # fmt: skip


def test_a_block_knows_the_canaries_of_its_night_on_its_device(seed: int) -> None:
    """It knows those that went well; nights are days here."""
    random = Random(seed)
    cells = [Cell(workload=Workload(network=name), backend=Api.CPU) for name in ("lenet", "squeezenet_v1_1")]
    blocks = []
    for number in range(200):
        day, serial, of = random.randrange(3), random.choice("AB"), random.choice(cells)
        at = 86400.0 * day + 60.0 * number
        blocks.append(
            BlockFigures(
                experiment_id=random.choice(("x", "y")), job_id=f"j-{number}", attempt=1, token=number, serial=serial,
                cell_id=of.cell_id, block=number, worker="w", source=Source.PHONE, started_at=at, ended_at=at + 30,
                role=random.choice(("work", "canary")), outcome=random.choice((Outcome.OK, Outcome.OK, Outcome.FAILED)),
                times=times_of([random.uniform(1e6, 9e6)]),
            )
        )  # fmt: skip
    rows = rows_of(map(brief_of, blocks), {each.cell_id: each for each in cells})
    assert len(rows) == sum(each.role == "work" for each in blocks)
    for row in rows:
        known: dict[str, list[float]] = {}
        for each in blocks:
            here = (each.experiment_id, each.serial, each.started_at // 86400)
            good = each.role == "canary" and each.outcome is Outcome.OK and each.times is not None
            if good and here == (row.night.split("/")[0], row.device, row.started_at // 86400):
                known.setdefault(each.cell_id, []).append(each.times.median_ms)
        assert row.canaries_ms == {name: pytest.approx(median(values)) for name, values in known.items()}
