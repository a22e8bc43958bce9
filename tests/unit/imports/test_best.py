"""The best value of an axis: the least mean, a ratio with its interval, and no mean over different things."""

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
from orchestrator.analysis.comparison import SideRow, compare
from orchestrator.analysis.comparison.ratio import Block
from orchestrator.ledger import Ledger
from orchestrator.model.choices import Choices
from orchestrator.model.device import Source
from orchestrator.model.errors import StableError
from orchestrator.model.event import Layer, Sample
from orchestrator.model.experiment import Matrix, Sampling
from orchestrator.spec.expansion.expand import expand
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


def block(value_ms: float, number: int = 0, *, foreign: bool = False, whole: bool = False, **columns: Any) -> Measured:
    source = Source.IMPORT if foreign else Source.PHONE
    at = 100.0 * number + columns.get("g", 0)
    return Measured({"device": "d", "backend": "b", **columns}, Block("n", number, at, value_ms, whole), 1, source)


def blocks(values_ms: Sequence[float], *, unpaired: int = 0, **columns: Any) -> list[Measured]:
    return [block(value, number + unpaired, **columns) for number, value in enumerate(values_ms)]


def one(found: list[Measured], axis: str = "g", per: Sequence[str] = ("device",), **where: str) -> Any:
    (best,) = choose(found, per, axis, where)
    return best


def row(of: Measured) -> SideRow:
    return SideRow(
        device="d", source=Source.PHONE, network="n", backend="b", precision="p", night=of.block.night,
        round=of.block.round, started_at=of.block.started_at, ended_at=of.block.started_at,
        values={"latency": of.block.value},
    )  # fmt: skip


@pytest.mark.parametrize("unpaired", [0, 1000], ids=["in rounds", "one after the other"])
def test_best_and_compare_answer_alike(unpaired: int) -> None:
    fast, slow = [10.0, 11.0, 12.0, 10.5, 11.5, 10.2], [10.6, 11.4, 12.9, 10.9, 12.2, 10.6]
    measured = blocks(fast, g=4), blocks(slow, g=8, unpaired=unpaired)
    best = one([*measured[0], *measured[1]])
    (told,) = compare(*([row(each) for each in side] for side in measured))
    assert (best.best, best.runner_up, best.method) == (4, 8, told.method)
    assert told.interval and best.interval and best.median_ms == pytest.approx(told.a)
    assert (best.ratio, best.interval.low, best.interval.high) == pytest.approx(
        (told.ratio, told.interval.low, told.interval.high)
    )
    assert best.resolved == (told.interval.low > 1) == (unpaired == 0)


def test_few_blocks_and_imports_without_blocks_resolve_nothing() -> None:
    best = one(blocks([1.0, 1.1, 1.0, 1.1], g=1) + blocks([2.0, 2.1, 2.0, 2.1], g=2))
    assert (best.best, best.resolved, best.interval, best.tied_with) == (1, False, None, (2,))
    assert "5 blocks" in best.reason and best.ratio == pytest.approx(1.95, abs=0.01)
    best = one([block(1.0, g=1, foreign=True), block(2.0, g=2, foreign=True)])
    assert (best.best, best.resolved, best.reason) == (1, False, "the import tells no blocks apart")


def test_noise_is_called_a_best_value_no_more_often_than_it_may() -> None:
    """Two equal values: resolved in about 5 % of cases."""
    generator = random.Random(3)
    resolved = 0
    for _ in range(400):
        drawn = [blocks([generator.gauss(10, 1) for _ in range(6)], g=g) for g in (1, 2)]
        resolved += one([*drawn[0], *drawn[1]]).resolved
    assert 0.02 <= resolved / 400 <= 0.09


def test_what_rounds_have_in_common_hides_no_difference() -> None:
    """5 % of noise that both blocks of a round share: a test of means finds a difference of 5 % in 17 of 100."""
    generator = random.Random(4)
    found = 0
    for _ in range(50):
        shared = [generator.gauss(10, 0.5) for _ in range(5)]
        drawn = [
            blocks([value * ratio * generator.gauss(1, 0.005) for value in shared], g=g)
            for g, ratio in ((1, 1.0), (2, 1.05))
        ]
        found += one([*drawn[0], *drawn[1]]).resolved
    assert found >= 48


def test_whole_milliseconds_are_not_sharper_than_their_rounding() -> None:
    assert not one(blocks([5.0] * 5, g=1, whole=True) + blocks([6.0] * 5, g=2, whole=True)).resolved
    assert one(blocks([50.0] * 5, g=1, whole=True) + blocks([60.0] * 5, g=2, whole=True)).resolved


def test_other_values_that_are_not_told_from_the_best_are_named() -> None:
    steady = {1: [10.0, 10.1, 9.9, 10.0, 10.1], 2: [11.0, 11.1, 10.9, 11.1, 11.0], 3: [9.0, 12.0, 14.5, 9.5, 11.0]}
    best = one([each for g, values in steady.items() for each in blocks(values, g=g)])
    assert (best.best, best.runner_up, best.resolved, best.tied_with) == (1, 2, True, (3,))
    best = one(blocks([1.0, 9.0, 40.0], g=1) + blocks([50.0, 50.1, 50.2], g=2))
    assert [(each.value, bool(each.unresolved)) for each in best.values] == [(1, True), (2, False)]


def test_different_things_are_not_put_into_one_median() -> None:
    mixed = [block(1.0, g=4, backend="opencl"), block(9.0, g=4, backend="vulkan"), block(5.0, g=8)]
    with pytest.raises(StableError, match="backend: opencl, vulkan") as caught:
        one(mixed)
    assert "--per" in str(caught.value) and "--where backend=opencl" in str(caught.value)
    assert one(mixed, backend="vulkan").median_ms == pytest.approx(9.0)
    assert len(choose(mixed, ["backend"], "g", {})) == 3


def test_what_differs_beside_the_axis_is_said() -> None:
    found = [block(1.0, backend="cpu", threads=4), block(2.0, backend="opencl")]
    assert one(found, axis="backend").also_differ == ("threads",)


@pytest.mark.parametrize(("axis", "per", "told"), [("h", ["device"], "'h'"), ("g", ["layer"], "'layer'")])
def test_a_column_that_is_not_there_is_told_with_those_that_are(axis: str, per: list[str], told: str) -> None:
    with pytest.raises(StableError, match=told) as caught:
        choose([block(1.0, g=4)], per, axis, {})
    assert "device, backend, g" in str(caught.value)


def test_an_ordinary_experiment(farm: Farm, ledger: Ledger) -> None:
    """Layers in two steps and two passes, five blocks, a lost attempt, a warm-up: only what counts counts."""
    experiment = make.experiment(matrix=Matrix(granularity=(4, 8)), sampling=Sampling(blocks=5))
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
        at = {"started_at": 10.0 * job.block + index, "ended_at": 10.0 * job.block + index}
        ledger.keep(make.record(job, attempt=1, token=given.token, samples=samples, layers=layers, **at))
    cells = {job.cell.cell_id: job.cell for job in jobs}
    blocks = ledger.figures("e-1", ["per_layer"])
    (layer,) = choose(measured_layers(blocks, cells), ["layer", "device"], "granularity", {})
    assert (layer.group, layer.best, layer.median_ms) == ({"layer": "conv1", "device": "A"}, 4, pytest.approx(2.0))
    (run,) = choose(measured_runs(blocks, cells), ["device"], "granularity", {})
    assert (run.best, run.resolved, run.values[0].blocks, run.values[0].samples) == (4, True, 5, 10)
    code, out, _ = farm("best", "e-1", "--axis", "granularity", "--json")
    assert (code, json.loads(out)[0]["best"]) == (0, 4)


def test_a_choices_file_has_the_best_and_the_worst_of_each_layer(farm: Farm, tmp_path: Path) -> None:
    rows = [f"d,n,{layer},b,p,{g},{ms}" for layer, ms in (("conv1", 9), ("conv2", 7)) for g, ms in ((4, ms), (8, 8))]
    imported(farm, write(tmp_path / "a.csv", rows))
    asked = ("best", "latest", "--axis", "granularity", "-o", tmp_path / "c.json")
    code, _, err = farm(*asked, "--per", "layer,device")
    found = Choices.model_validate_json((tmp_path / "c.json").read_bytes())
    assert "2 layers" in err and "of 2 layers the data do not tell" in err
    assert (code, {each.device for each in found.layers}) == (0, {"d"})
    chosen = {each.layer: (each.best, each.worst) for each in found.layers}
    assert chosen == {
        "conv1": ({"granularity": 8}, {"granularity": 4}), "conv2": ({"granularity": 4}, {"granularity": 8}),
    }  # fmt: skip
    code, _, err = farm(*asked)
    assert (code, "add `layer` to --per" in err) == (1, True)
    imported(farm, write(tmp_path / "b.csv", [*rows, "d,n,conv1,b2,p,4,1"]))
    code, _, err = farm(*asked, "--per", "layer,device,backend")
    assert (code, "--where backend=opencl" in err) == (1, True)
    code, _, err = farm(*asked, "--per", "layer,device,precision", "--where", "backend=b")
    assert (code, "p is no precision of this farm" in err) == (1, True)
    rows = [f"d,n,conv1,b,{name},{g},{g}" for name in ("fp32", "imprecise") for g in (4, 8)]
    imported(farm, write(tmp_path / "c.csv", rows))
    assert farm(*asked, "--per", "layer,device,precision")[0] == 0
    found = Choices.model_validate_json((tmp_path / "c.json").read_bytes())
    assert [each.key for each in found.layers] == [("d", "fp32"), ("d", "imprecise")]


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
