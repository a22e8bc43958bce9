"""A very large matrix asks back before anything is built."""

from __future__ import annotations

import pytest

from farm.cli.experiments import submission
from orchestrator.model.errors import StableError
from orchestrator.model.experiment import DeviceChoice, Experiment, Matrix, Sampling, Workload


def experiment(blocks: int, count: str | int = "all", **axes: object) -> Experiment:
    return Experiment(
        name="x",
        workload=Workload(network="lenet"),
        devices=DeviceChoice(count=count),
        matrix=Matrix.model_validate(axes),
        sampling=Sampling(blocks=blocks),
    )


def test_a_million_jobs_are_refused_with_their_axes() -> None:
    huge = experiment(1000, backend=["opencl", "vulkan"], precision=["fp32", "fp16"], granularity=list(range(4, 65, 4)))
    with pytest.raises(StableError, match="64,000 jobs") as caught:
        submission.confirm_size(huge, 1, yes=False)
    for axis in ("backend 2", "precision 2", "granularity 16", "blocks 1,000", "devices 1"):
        assert axis in str(caught.value)
    assert caught.value.remedy
    assert "--yes" in caught.value.remedy


@pytest.mark.parametrize(("count", "devices", "asks"), [("all", 11, True), ("any", 11, False), (2, 11, False)])
def test_devices_count(count: str | int, devices: int, asks: bool) -> None:
    of = experiment(1000, count=count)
    if asks:
        with pytest.raises(StableError):
            submission.confirm_size(of, devices, yes=False)
    else:
        submission.confirm_size(of, devices, yes=False)


def test_yes_and_small_ones_pass() -> None:
    submission.confirm_size(experiment(1000, granularity=list(range(1, 65))), 100, yes=True)
    submission.confirm_size(experiment(10), 1000, yes=False)
