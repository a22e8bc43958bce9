"""What a night says of a cell that it looked at more than once."""

from __future__ import annotations

import math

import pytest

from orchestrator.analysis.comparison.verdict import share_of
from orchestrator.analysis.figures import BlockFigures, times_of
from orchestrator.model.device import Api, Source
from orchestrator.model.experiment import Side, Sides, Workload
from orchestrator.model.job import Cell
from orchestrator.model.record import Outcome
from orchestrator.nightly import Night, Suite, Wave
from orchestrator.nightly.plan import bare
from orchestrator.nightly.table import Measured, table
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
