"""The best value of an axis: the least mean, a margin with its interval, and no mean over different things."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.analysis.best import choose, measured_layers, measured_runs
from orchestrator.analysis.best.measured import Measured
from orchestrator.analysis.figures import mean_of
from orchestrator.errors import StableError
from orchestrator.expansion.expand import expand
from orchestrator.ledger import Ledger
from orchestrator.model.event import Layer, Sample
from orchestrator.model.experiment import Matrix, Sampling
from tests.source_tree import ROOT
from tests.unit.orchestrator import make

from .conftest import Farm
from .test_import import imported, write

pytestmark = pytest.mark.unit

LOGS = ROOT.parent / "shared" / "data" / "mobile_convnet" / "galaxy_s7" / "logs"
PUBLISHED = {
    "conv1": 6, "fire2_expand1x1": 8, "fire2_expand3x3": 4, "fire3_expand1x1": 8, "fire3_expand3x3": 8,
    "fire4_expand1x1": 8, "fire4_expand3x3": 8, "fire5_expand1x1": 4, "fire5_expand3x3": 4, "fire6_expand1x1": 12,
    "fire6_expand3x3": 12, "fire7_expand1x1": 6, "fire7_expand3x3": 4,
}  # fmt: skip
"""Best granularity of each layer on the Galaxy S7, from the table of study S."""


def block(times_ms: Sequence[float], *, foreign: bool = False, **columns: Any) -> Measured:
    return Measured({"device": "d", "backend": "b", **columns}, mean_of(times_ms), foreign)


def one(found: list[Measured], axis: str = "g", per: Sequence[str] = ("device",), **where: str) -> Any:
    (best,) = choose(found, per, axis, where)
    return best


def test_the_least_mean_over_blocks_wins_with_welchs_interval() -> None:
    """Block means 10, 11, 12 against 14, 15, 16, 17: margin 4.5, t(0.975; 4.96 degrees of freedom) = 2.577."""
    slow = [block([value - 1, value + 1], g=8) for value in (14, 15, 16, 17)]
    fast = [block([value, value], g=4) for value in (10, 11, 12)]
    best = one([*slow, *fast])
    assert (best.best, best.runner_up, best.unit, best.resolved, best.tied_with) == (4, 8, "block", True, ())
    assert (best.mean_ms, best.margin_ms) == (11.0, 4.5)
    half = 2.577 * (1 / 3 + (5 / 3) / 4) ** 0.5
    assert best.interval_ms.low == pytest.approx(4.5 - half, abs=0.01)
    assert best.interval_ms.high == pytest.approx(4.5 + half, abs=0.01)


def test_the_block_is_the_unit_and_one_of_them_resolves_nothing() -> None:
    """A thousand samples of one block are one figure, unless nobody knows about blocks."""
    alike = [[1.5, 1.25] * 50, [2.5, 2.25] * 50]
    best = one([block(times, g=g) for g, times in enumerate(alike)])
    assert (best.best, best.unit, best.resolved, best.interval_ms, best.tied_with) == (0, "block", False, None, (1,))
    best = one([block(times, g=g, foreign=True) for g, times in enumerate(alike)])
    assert (best.best, best.unit, best.resolved) == (0, "sample", True)


def test_noise_is_called_a_best_value_no_more_often_than_it_may() -> None:
    """Two equal values: resolved in about 5 % of cases."""
    generator = random.Random(3)
    resolved = 0
    for _ in range(400):
        blocks = [block([generator.gauss(10, 1)], g=g) for g in (1, 2) for _ in range(6)]
        resolved += one(blocks).resolved
    assert 0.02 <= resolved / 400 <= 0.09


def test_whole_milliseconds_are_not_sharper_than_their_rounding() -> None:
    best = one([block([5.0] * 3, g=1, foreign=True), block([5.0, 5.0, 6.0], g=2, foreign=True)])
    assert not best.resolved
    best = one([block([5.0] * 20, g=1, foreign=True), block([6.0] * 20, g=2, foreign=True)])
    assert best.resolved


def test_rounding_counts_for_blocks_too() -> None:
    assert not one([block([value], g=g) for g, value in ((1, 5.0), (2, 6.0)) for _ in range(2)]).resolved
    assert one([block([value] * 50, g=g) for g, value in ((1, 5.0), (2, 6.0)) for _ in range(2)]).resolved


def test_other_values_that_are_not_told_from_the_best_are_named() -> None:
    steady = {1: [10.0, 10.1, 9.9], 2: [11.0, 11.1, 10.9], 3: [9.5, 12.0, 14.5]}
    best = one([block([value], g=g) for g, values in steady.items() for value in values])
    assert (best.best, best.runner_up, best.resolved, best.tied_with) == (1, 2, True, (3,))


def test_different_things_are_not_put_into_one_mean() -> None:
    mixed = [block([1.0], g=4, backend="opencl"), block([9.0], g=4, backend="vulkan"), block([5.0], g=8)]
    with pytest.raises(StableError, match="backend: opencl, vulkan") as caught:
        one(mixed)
    assert "--per" in str(caught.value) and "--where backend=opencl" in str(caught.value)
    assert one(mixed, backend="vulkan").mean_ms == 9.0
    assert len(choose(mixed, ["backend"], "g", {})) == 3


def test_what_differs_beside_the_axis_is_said() -> None:
    found = [block([1.0], backend="cpu", threads=4), block([2.0], backend="opencl")]
    assert one(found, axis="backend").also_differ == ("threads",)


@pytest.mark.parametrize(("axis", "per", "told"), [("h", ["device"], "'h'"), ("g", ["layer"], "'layer'")])
def test_a_column_that_is_not_there_is_told_with_those_that_are(axis: str, per: list[str], told: str) -> None:
    with pytest.raises(StableError, match=told) as caught:
        choose([block([1.0], g=4)], per, axis, {})
    assert "device, backend, g" in str(caught.value)


def test_an_ordinary_experiment(farm: Farm, ledger: Ledger) -> None:
    """Layers in two steps and two passes, three blocks, a lost attempt, a warm-up: only what counts counts."""
    experiment = make.experiment(matrix=Matrix(granularity=(4, 8)), sampling=Sampling(blocks=3))
    jobs = expand(experiment, "e-1", [make.device("A")]).jobs
    ledger.submit("e-1", experiment, jobs)
    for index, job in enumerate(jobs):
        slow = 2.0 if job.cell.options["granularity"] == 8 else 1.0
        given = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
        assert given is not None
        times = [100.0, slow + index / 100, slow]
        samples = tuple(
            Sample(seq=i, t_ns=0, index=i, phase="timed" if i else "warmup", start_ns=1, duration_ns=round(ms * 1e6))
            for i, ms in enumerate(times)
        )
        layers = tuple(
            Layer(seq=0, t_ns=0, index=i, layer="conv1", program="p", duration_ns=round(slow * 1e6), repeat=repeat)
            for i in range(2)
            for repeat in range(2)
        )
        ledger.keep(make.record(job, attempt=1, token=given.token, samples=samples, layers=layers))
    cells = {job.cell.cell_id: job.cell for job in jobs}
    blocks = ledger.figures("e-1", ["per_layer"])
    (layer,) = choose(measured_layers(blocks, cells), ["layer", "device"], "granularity", {})
    assert (layer.group, layer.best, layer.mean_ms, layer.unit) == ({"layer": "conv1", "device": "A"}, 4, 2.0, "block")
    (run,) = choose(measured_runs(blocks, cells), ["device"], "granularity", {})
    assert (run.best, run.resolved, run.values[0].units, run.values[0].samples) == (4, True, 3, 6)
    code, out, _ = farm("best", "e-1", "--axis", "granularity", "--json")
    assert (code, json.loads(out)[0]["best"]) == (0, 4)


def test_command_says_what_is_missing(farm: Farm, tmp_path: Path) -> None:
    imported(farm, write(tmp_path / "a.csv", ["d,n,conv1,b,p,4,1", "d,n,conv1,b,p,8,2"]))
    code, _, err = farm("best", "latest", "--axis", "granularity")
    assert (code, "add `layer` to --per" in err) == (1, True)
    code, out, err = farm("best", "latest", "--per", "layer", "--axis", "granularity")
    assert (code, "conv1" in out, "no blocks apart" in err) == (0, True, True)
    code, _, err = farm("best", "latest", "--per", "layer", "--axis", "granularity", "--where", "backend")
    assert (code, "COLUMN=VALUE" in err) == (2, True)
    code, _, err = farm("best", "latest", "--per", "layer", "--axis", "granularity", "--where", "backend=x")
    assert (code, "backend is one of b" in err) == (1, True)


def test_published_best_granularities_of_the_galaxy_s7(farm: Farm, tmp_path: Path) -> None:
    """13 of 13, from the authors' logs through import and best."""
    if not LOGS.is_dir():
        pytest.skip("the authors' logs (shared/data/mobile_convnet) are not on this machine")
    rows = [
        f"Galaxy S7,squeezenet,{match[1].lower()},renderscript,precise,{path.stem},{match[2]}"
        for path in LOGS.glob("[0-9]*.txt")
        for match in re.finditer(r"^(\w+) \(ms\):?\s*([\d.]+)$", path.read_text(), re.MULTILINE)
    ]
    name = imported(farm, write(tmp_path / "s7.csv", rows))["experiment"]
    code, out, _ = farm("best", name, "--per", "layer,device", "--axis", "granularity", "--json")
    found = {each["group"]["layer"]: each["best"] for each in json.loads(out)}
    assert code == 0
    assert {layer: found[layer] for layer in PUBLISHED} == PUBLISHED
