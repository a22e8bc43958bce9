"""The entries of the tuning database that a plan takes: another number of CPU threads is another device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernels.frontend.load import load_workload
from kernels.options import Choice, Options
from kernels.tuning import Database, Found, Layer, device_key, distinct
from orchestrator.model.device import Api, ApiFacts, DeviceFacts, Precision, Source
from orchestrator.model.errors import Unsupported
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from workers.engines.pocketfarm.plans.plan_store import Plans
from workers.engines.pocketfarm.plans.tuned_choices import FILE, key_of

CORES = 4
OTHER = Choice("im2col")
"""A choice that the compiler does not take on its own."""


def device(**facts: Any) -> DeviceFacts:
    cpu = ApiFacts(
        api=Api.CPU, version="1", device_name="arm64-v8a processor", driver="agent 1 neon", compute_units=8,
        precisions=(Precision.FP32, Precision.RELAXED),
    )  # fmt: skip
    levels = (Precision.FP32, Precision.RELAXED, Precision.IMPRECISE)
    opencl = ApiFacts(api=Api.OPENCL, version="OpenCL 3.0", device_name="Mali", driver="7", precisions=levels)
    known = {"serial": "s", "host": "h", "kind": "phone", "source": Source.PHONE, "cores": CORES}
    return DeviceFacts(**{**known, "apis": (cpu, opencl), **facts})


def test_threads_and_processor_are_part_of_the_key() -> None:
    assert key_of(device(), Api.CPU, 1) == "cpu | arm64-v8a processor | agent 1 neon | 1 thread"
    assert key_of(device(), Api.CPU) == key_of(device(), Api.CPU, CORES)
    assert key_of(device(), Api.CPU).endswith(" | 4 threads")
    assert key_of(device(cores=0), Api.CPU).endswith(" | 8 threads")
    assert key_of(device(soc="Tensor G2"), Api.CPU, 2) == "cpu | Tensor G2 | agent 1 neon | 2 threads"
    assert key_of(device(soc="Tensor G2"), Api.OPENCL, 2) == "opencl | Mali | 7"  # threads are the CPU backend's
    assert key_of(device(), Api.VULKAN) == ""


def entry(key: str, conv: str, **changes: Any) -> dict[str, Any]:
    """Return an entry as a file keeps it."""
    return {
        "device": key, "precision": "fp32", "conv": conv, "algorithm": OTHER.algorithm, "tile": OTHER.tile, "ms": 0.1,
        "default": "implicit_gemm", "default_ms": 0.2, "tried": 3, "failed": 0, "kept": True, "at": 1.0, **changes,
    }  # fmt: skip


@pytest.fixture
def convolution() -> Layer:
    return next(iter(distinct(load_workload(network="lenet", onnx=None, seed=1), Options("cpu")).values()))


def takes(plans: Plans, cpus: int = 0, **options: int | str | bool) -> bool:
    """Return whether the plan of a cell has the choice."""
    cell = Cell(workload=Workload(network="lenet"), backend=Api.CPU, options=options)
    return OTHER.words in plans.plan(cell, device(), cpus=cpus).plan.options.values()


def test_a_choice_is_taken_for_its_number_of_threads_alone(tmp_path: Path, convolution: Layer) -> None:
    plans = Plans(tmp_path)
    assert not takes(plans, threads=2)
    (tmp_path / FILE).write_text(json.dumps([entry(key_of(device(), Api.CPU, 2), convolution.key)]))
    assert takes(plans, threads=2)
    assert not takes(plans, threads=2, tuned=False)
    assert not takes(plans, threads=2, algorithm="direct")
    assert not takes(plans, threads=1)
    assert not takes(plans, threads=4)
    assert not takes(plans)  # on four cores
    assert takes(plans, cpus=2)  # by the cores that it may use
    assert takes(plans, cpus=4, threads=2)
    # how threads live does not shape a plan, unless each works on a layer of its own
    assert takes(plans, threads=2, thread_life="per_call", pin_threads=True)
    assert not takes(plans, threads=2, pipeline="balanced")
    (tmp_path / FILE).write_text(json.dumps([entry(key_of(device(), Api.CPU, 1), convolution.key)]))
    assert takes(plans, threads=2, pipeline="balanced") and takes(plans, threads=1)
    (tmp_path / FILE).write_text(json.dumps([entry(key_of(device(), Api.CPU), convolution.key)]))
    assert takes(plans) and takes(plans, threads=CORES) and not takes(plans, threads=2)


def test_a_file_without_threads_is_read_and_goes_on_to_count(tmp_path: Path, convolution: Layer) -> None:
    """An earlier version's file has OpenCL as it is now, and of the CPU nothing that holds for a number of threads."""
    old = [entry("opencl | Mali | 7", convolution.key), entry("cpu | arm64-v8a processor | agent 1 neon", "conv")]
    (tmp_path / FILE).write_text(json.dumps(old))
    database = Database(tmp_path / FILE)
    assert database.tuned(key_of(device(), Api.OPENCL), "fp32") == {convolution.key: OTHER}
    assert not takes(Plans(tmp_path))
    fresh = Found.model_validate(entry(key_of(device(), Api.CPU), convolution.key))
    database.add(fresh)
    database.save()
    again = Database(tmp_path / FILE)
    assert len(again) == 3 and fresh in list(again)
    assert device_key("opencl", "Mali", "7") == old[0]["device"]
    assert takes(Plans(tmp_path))


def test_a_choices_file_gives_each_layer_its_own_by_serial_number_else_by_model(tmp_path: Path) -> None:
    layers = [
        {"device": pattern, "layer": "conv1", "best": {"granularity": g}, "worst": {"granularity": 4 * g}} | arithmetic
        for pattern, g, arithmetic in (
            ("SM-G930*", 6, {"precision": "imprecise"}), ("SM-G930*", 2, {}), ("s", 3, {"precision": "fp32"}),
        )
    ]  # fmt: skip
    path = tmp_path / "choices.json"
    path.write_text(json.dumps({"origin": "here", "layers": layers}))
    workload = Workload(network="lenet", choices=str(path))

    def own(serial: str, model: str, precision: Precision = Precision.FP32, **options: str) -> object:
        cell = Cell(
            workload=workload, backend=Api.OPENCL, precision=precision, options={"algorithm": "dot_uneven", **options}
        )
        plan = Plans(tmp_path).plan(cell, device(serial=serial, model=model)).plan
        return plan.options.get("granularity:conv1")

    assert [own("s", "SM-G930F"), own("t", "SM-G930F"), own("t", "SM-G930F", choices="worst")] == [3, 2, 8]
    assert [own("t", "SM-G930F", Precision(name)) for name in ("imprecise", "relaxed")] == [6, 2], "its own, else any"
    assert own("s", "Pixel 7") == 3 and own("t", "Pixel 7", choices="none") is None
    with pytest.raises(Unsupported, match=r"Pixel 7. in relaxed; .* for: SM-G930\* in imprecise, SM-G930\*, s in fp32"):
        own("s", "Pixel 7", Precision.RELAXED)
