"""A set of examples in an experiment: what goes with it, and which examples a block takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator import spec
from orchestrator.model.base import content_hash
from orchestrator.model.device import Api
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import Conditions, Dataset, Experiment, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job

TEXT = """
name: agree
workload: {network: lenet, dataset: {inputs: set.npy, shard: 6}}
"""


def job(block: int, dataset: Dataset, **options: int) -> Job:
    cell = Cell(workload=Workload(network="lenet", dataset=dataset), backend=Api.CPU, options=options)
    return Job(
        experiment_id="e", cell=cell, block=block, candidates=("A",), sampling=Sampling(), conditions=Conditions(),
        measure=Measure(),
    )  # fmt: skip


@given(size=st.integers(1, 300), shard=st.integers(1, 50))
def test_the_shards_are_the_set(size: int, shard: int) -> None:
    dataset = Dataset(inputs="x.npy", size=size, shard=shard)
    parts = [dataset.examples(block) for block in range(dataset.shards)]
    assert [place for part in parts for place in part] == list(range(size))
    assert all(len(part) == shard for part in parts[:-1]) and 1 <= len(parts[-1]) <= shard


def test_the_last_block_may_have_fewer_inferences() -> None:
    dataset = Dataset(inputs="x.npy", size=10, shard=6)
    assert [job(block, dataset).inferences for block in (0, 1)] == [6, 4]
    assert [job(block, dataset, batch=2).inferences for block in (0, 1)] == [3, 2]
    assert job(1, dataset).examples == range(6, 10)


def test_each_example_once_by_default() -> None:
    sampling = spec.parse(TEXT).sampling
    assert (sampling.warmup, sampling.samples) == (0, 1)
    asked = spec.parse(f"{TEXT}sampling: {{warmup: 1, samples: 2, order: abba}}").sampling
    assert (asked.warmup, asked.samples, asked.order) == (1, 2, "abba")
    assert spec.parse("name: a\nworkload: {network: lenet}").sampling == Sampling()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("sampling: {blocks: 4}", "leave out `sampling.blocks`"),
        ("sampling: {frames: 4}", "leave out `sampling.frames`"),
        ("sampling: {target_interval: 5 %}", "leave out `sampling.target_interval`"),
        ("sampling: {mode: sustained, load: 10 s}", "leave out `sampling.mode`"),
        ("matrix: {batch: [2, 4]}", "shard 6 is no multiple of the batch 4"),
    ],
)
def test_what_does_not_go_with_a_set(more: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        spec.parse(TEXT + more)
    spec.parse(TEXT + "matrix: {batch: [2, 3], backend: cpu, threads: 2, pipeline: balanced}")
    with pytest.raises(SpecError, match="give one of `input`"):
        spec.parse(TEXT.replace("network: lenet", "network: lenet, input: x.npy"))


def test_a_submitted_experiment_has_its_blocks() -> None:
    dataset = Dataset(inputs="set.npy", shard=6, size=10)
    stored = Experiment(
        name="agree", workload=Workload(network="lenet", dataset=dataset), sampling=Sampling(blocks=2, samples=1)
    )
    assert Experiment.model_validate_json(stored.model_dump_json()) == stored
    with pytest.raises(ValueError, match="not submitted"):
        Dataset(inputs="set.npy").examples(0)


def test_a_workload_without_a_set_is_the_workload_that_it_was() -> None:
    """Its identity is a hash of its content: records of years are compared by it."""
    assert "dataset" not in Workload(network="lenet").model_dump(mode="json")
    assert content_hash(Workload(network="lenet")) == "5e272b124c886c77"


@pytest.mark.parametrize("fields", [{"mean": []}, {"scale": float("nan")}, {"shard": 0}, {"size": 0}])
def test_numbers_that_are_none(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Dataset.model_validate({"inputs": "x.npy", **fields})
