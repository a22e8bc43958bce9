"""A set of examples: each block its shard, from the file to the predictions in the record, with the real agent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernels.frontend.load import load_workload
from kernels.reference import evaluate
from orchestrator.analysis.agreement import Answer, compare
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import Dataset, Sampling, Workload
from orchestrator.model.record import Outcome, Record
from workers.devices.workstation import CPU_SERIAL
from workers.engines.pocketfarm.plans.plan_store import Plans

from .test_run import Runner, assignment, engines, here

__all__ = ["engines", "here"]

EXAMPLES, SHARD = 14, 6
ONCE = Sampling(warmup=0, samples=1, blocks=3, deadline="60 s")


@pytest.fixture(scope="module")
def raw(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (EXAMPLES, 1, 28, 28), dtype=np.uint8)


@pytest.fixture
def workload(raw: np.ndarray, tmp_path: Path) -> Workload:
    np.save(tmp_path / "set.npy", raw)
    dataset = Dataset(inputs=str(tmp_path / "set.npy"), shard=SHARD, size=EXAMPLES, mean=127.5, scale=0.01)
    return Workload(network="lenet", dataset=dataset)


def right_classes(raw: np.ndarray) -> list[list[int]]:
    """Return the best five, in double precision."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    inputs = (raw.astype(np.float64) - 127.5) * 0.01
    scores = [evaluate(graph, {graph.inputs[0]: each[None]})[graph.outputs[0]].ravel() for each in inputs]
    return [np.argsort(-each)[:5].tolist() for each in scores]


def ran(
    runner: Runner,
    workload: Workload,
    api: Api,
    block: int,
    precision: Precision = Precision.FP32,
    **options: int | str,
) -> Record:
    placed = assignment(CPU_SERIAL, api, sampling=ONCE, workload=workload, precision=precision, **options)
    job = placed.job.model_copy(update={"block": block})
    record = runner(placed.model_copy(update={"job": job}))
    assert record.outcome is Outcome.OK, record.reasons
    return record


@pytest.mark.parametrize(
    ("api", "options"),
    [(Api.CPU, {}), (Api.CPU, {"batch": 2, "threads": 2}), (Api.OPENCL, {}), (Api.VULKAN, {"batch": 2})],
)
def test_each_block_predicts_its_shard(
    here: Runner, workload: Workload, raw: np.ndarray, api: Api, options: dict[str, int | str]
) -> None:
    found: list[tuple[int, ...]] = []
    for block in range(3):
        record = ran(here, workload, api, block, **options)
        assert record.predictions is not None and record.predictions.first == block * SHARD
        assert [check.ok for check in record.checks] == [True]
        (sample,) = record.samples
        batch = int(options.get("batch", 1))
        assert sample.inferences * batch == len(record.predictions.top)
        assert all(margin > 0 for margin in record.predictions.margins)
        found += record.predictions.top
    assert [list(top) for top in found] == right_classes(raw)


def test_predictions_in_8_bits_are_compared_with_fp32(here: Runner, workload: Workload) -> None:
    """`farm agreement` says this of a precision `int8`, from records that the agent made."""
    found: dict[Precision, dict[int, Answer]] = {Precision.FP32: {}, Precision.INT8: {}}
    for precision, answers in found.items():
        for block in range(3):
            predicted = ran(here, workload, Api.CPU, block, precision).predictions
            assert predicted is not None
            pairs = zip(predicted.top, predicted.margins, strict=True)
            answers |= {predicted.first + place: Answer(top, margin) for place, (top, margin) in enumerate(pairs)}
    compared = compare(found[Precision.FP32], found[Precision.INT8], None)
    assert compared is not None
    assert compared.same.of == EXAMPLES
    assert compared.same.interval.low < compared.same.share <= compared.same.interval.high
    assert found[Precision.FP32] != found[Precision.INT8]  # margins, at least


def test_a_wrong_shard_is_a_wrong_output(here: Runner, workload: Workload, raw: np.ndarray, tmp_path: Path) -> None:
    """The check looks at the shard's own first example: were it another's, the block would not count."""
    record = ran(here, workload, Api.CPU, 1)
    plans = Plans(here.bench.settings.state)
    own = plans.models.reference(workload, None, range(SHARD, 2 * SHARD))
    first = plans.models.reference(workload, None, range(SHARD))
    (name,) = own
    difference = float(np.abs(own[name] - first[name]).max())
    assert difference > 10 * record.checks[0].tolerance > 10 * record.checks[0].max_abs_difference
