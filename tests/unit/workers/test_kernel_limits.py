"""A limit that a driver's refusal taught is remembered for its device, and never grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.model.device import Api, ApiFacts, DeviceFacts, Source
from orchestrator.model.event import Error
from workers.engines.pocketfarm.plans.kernel_limits import FILE, KernelLimits

pytestmark = pytest.mark.unit


def device(driver: str = "1") -> DeviceFacts:
    facts = ApiFacts(
        api=Api.OPENCL, version="OpenCL 2.0", device_name="Adreno", vendor="Qualcomm", driver=driver, library="",
        precisions=(), global_bytes=0, max_buffer_bytes=0, local_bytes=0, max_work_group=1024,
    )  # fmt: skip
    return DeviceFacts(serial="s", host="h", kind="phone", source=Source.PHONE, apis=(facts,))


def refusal(asked: int, told: int, kernel: str = "conv_tiled") -> Error:
    return Error(seq=0, t_ns=0, code="limit", message="m", kernel=kernel, work_group=asked, work_group_limit=told)


def test_limits_are_learnt_kernel_by_kernel_and_kept(tmp_path: Path) -> None:
    limits = KernelLimits(tmp_path)
    assert limits.of(device(), Api.OPENCL) == {}
    learnt = limits.learn(device(), Api.OPENCL, refusal(256, 96))
    assert learnt is not None and (learnt.work_group, learnt.limit, learnt.reason) == (256, 96, "m")
    limits.learn(device(), Api.OPENCL, refusal(64, 0, "matvec"))
    assert KernelLimits(tmp_path).of(device(), Api.OPENCL) == {"conv_tiled": 96, "matvec": 32}, "half where not told"
    assert limits.of(device("2"), Api.OPENCL) == {}, "another driver, another compiler"


def test_a_driver_that_allows_what_it_refuses_is_not_believed(tmp_path: Path) -> None:
    limits = KernelLimits(tmp_path)
    for expected in (128, 64):
        limits.learn(device(), Api.OPENCL, refusal(2 * expected, 1024))
        assert limits.of(device(), Api.OPENCL) == {"conv_tiled": expected}
    limits.learn(device(), Api.OPENCL, refusal(256, 0))
    assert limits.of(device(), Api.OPENCL) == {"conv_tiled": 64}


@pytest.mark.parametrize("error", [refusal(1, 0), refusal(256, 64, ""), Error(seq=0, t_ns=0, code="limit", message="")])
def test_there_is_nothing_to_learn_of_other_errors(tmp_path: Path, error: Error) -> None:
    assert KernelLimits(tmp_path).learn(device(), Api.OPENCL, error) is None
    assert not (tmp_path / FILE).exists()


def test_a_damaged_file_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    assert KernelLimits(tmp_path).learn(device(), Api.OPENCL, refusal(64, 32))
    assert KernelLimits(tmp_path).of(device(), Api.OPENCL) == {"conv_tiled": 32}
