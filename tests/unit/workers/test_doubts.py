"""Each doubt arises from its cause, and from nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from orchestrator.energy import block_energy
from orchestrator.model.device import Api, DeviceFacts, DeviceState, Health, Precision, Source
from orchestrator.model.event import Event, Memory, Output, Power, Sample, Warning
from orchestrator.model.experiment import Conditions, Measure, Sampling, Workload
from orchestrator.model.job import Cell, Job
from orchestrator.model.power import PowerSource, Scope
from orchestrator.model.record import Doubt, DoubtCode, Outcome, Record
from tests.unit.energy.blocks import load_between, readings, record, series
from workers.engines.pocketfarm.doubts import own_doubts
from workers.execution.doubts import find_doubts
from workers.execution.validity import with_validity

PHONE = DeviceFacts(serial="p", host="h", kind="phone", source=Source.PHONE)
COOL = DeviceState(health=Health.READY, battery_temp_c=25.0, thermal_status=0, charging=False)


def job(*quantities: str) -> Job:
    return Job(
        experiment_id="e",
        cell=Cell(workload=Workload(network="tiny"), backend=Api.CPU, precision=Precision.FP32),
        block=0,
        candidates=("p",),
        sampling=Sampling(),
        conditions=Conditions(),
        measure=Measure.model_validate({"quantities": quantities or ("latency",)}),
    )


def samples(*durations_ns: int) -> list[Event]:
    return [
        Sample(seq=i, t_ns=i, index=i, phase="timed", start_ns=i, duration_ns=duration)
        for i, duration in enumerate(durations_ns)
    ]


STEADY = samples(*[1000] * 10)


def codes(
    events: list[Event],
    device: DeviceFacts = PHONE,
    *states: DeviceState,
    quantities: tuple[str, ...] = (),
    **options: bool,
) -> list[DoubtCode]:
    asked = job(*quantities)
    own = tuple(own_doubts(asked.cell, events, (), ()))
    found = find_doubts(asked, device, events, states or (COOL,), resumed=options.get("resumed", False), own=own)
    return [doubt.code for doubt in found]


def test_a_steady_block_on_a_cool_phone_is_beyond_doubt() -> None:
    assert codes(STEADY) == []


@pytest.mark.parametrize("mode", ["cold", "sustained"])
def test_times_that_are_to_differ_are_not_judged(mode: str) -> None:
    """One first inference a block, and the course of the times under load, are what these modes ask for."""
    asked = job().model_copy(update={"sampling": Sampling().model_copy(update={"mode": mode})})
    for timed in (samples(1000), samples(*range(1000, 2000, 10))):
        assert find_doubts(asked, PHONE, timed, (COOL,), resumed=False) == ()


@pytest.mark.parametrize("mode", ["steady", "sustained"])
def test_means_over_runs_are_told(mode: str) -> None:
    asked = job().model_copy(update={"sampling": Sampling().model_copy(update={"mode": mode})})
    grouped = [each.model_copy(update={"mean_of": 1200}) for each in STEADY[:3]]
    (found,) = find_doubts(asked, PHONE, [*grouped, *STEADY], (COOL,), resumed=False)
    assert (found.code, "up to 1,200 inferences" in found.detail) == (DoubtCode.MEAN_OF_RUNS, True)


def test_warm_up_is_not_judged() -> None:
    slow = Sample(seq=0, t_ns=0, index=0, phase="warmup", start_ns=0, duration_ns=10**9)
    assert codes([slow, *STEADY]) == []


@pytest.mark.parametrize(
    ("events", "code"),
    [
        (samples(1000, 1000, 1000, 1000), DoubtCode.FEW_SAMPLES),
        (samples(*[900, 1100] * 5), DoubtCode.NOISY_SAMPLES),
        (samples(1000, 1000, 1010, 1010, 1020, 1020, 1020, 1030, 1060, 1060), DoubtCode.DRIFT),
        (samples(1060, 1060, 1010, 1010, 1010, 1010, 1010, 1000, 1000, 1000), DoubtCode.DRIFT),
        (
            [*STEADY, Output(seq=10, t_ns=1, name="y", file="0.bin", bytes=4, sha256="0", finite=False)],
            DoubtCode.NON_FINITE_OUTPUT,
        ),
        (
            [*STEADY, STEADY[0].model_copy(update={"stage": "train", "epoch": 1, "loss": None})],
            DoubtCode.DIVERGED,
        ),
        ([*STEADY, Warning(seq=10, t_ns=1, code="clock", message="odd")], DoubtCode.AGENT_WARNING),
        ([*STEADY, Warning(seq=10, t_ns=1, code="layers_missing", message="without ip1")], DoubtCode.LAYERS_MISSING),
        (
            [*STEADY, Power(seq=10, t_ns=1, gpu_hz=624_000_000), Power(seq=11, t_ns=2, gpu_hz=401_000_000)],
            DoubtCode.FREQUENCY_CHANGED,
        ),
    ],
)
def test_doubts_of_the_events(events: list[Event], code: DoubtCode) -> None:
    assert codes(events) == [code]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"charging": True}, DoubtCode.CHARGING),
        ({"thermal_status": 1}, DoubtCode.HOT),
        ({"battery_temp_c": 40.5}, DoubtCode.HOT),
    ],
)
def test_doubts_of_the_state_before_or_after(change: dict[str, object], code: DoubtCode) -> None:
    changed = COOL.model_copy(update=change)
    assert codes(STEADY, PHONE, changed, COOL) == codes(STEADY, PHONE, COOL, changed) == [code]


def test_unknown_state_is_no_doubt() -> None:
    assert codes(STEADY, PHONE, DeviceState(health=Health.READY)) == []


def test_sources_are_labelled() -> None:
    virtual = PHONE.model_copy(update={"source": Source.VIRTUAL})
    replay = PHONE.model_copy(update={"source": Source.REPLAY})
    host = PHONE.model_copy(update={"source": Source.WORKSTATION, "kind": "workstation", "gpu_vendor": "cpu"})
    gpu = host.model_copy(update={"gpu_vendor": "nvidia"})
    assert codes(STEADY, virtual) == [DoubtCode.VIRTUAL_DEVICE, DoubtCode.SHARED_HOST]
    assert codes(STEADY, replay) == [DoubtCode.VIRTUAL_DEVICE]
    assert codes(STEADY, host) == [DoubtCode.SHARED_HOST]
    assert codes(STEADY, gpu) == []


def test_a_gauge_is_missed_only_where_power_is_wanted() -> None:
    reading = Power(seq=10, t_ns=1, current_ua=-200_000)
    blind = Power(seq=10, t_ns=1, voltage_uv=4_000_000)
    assert codes(STEADY, quantities=("power",)) == [DoubtCode.NO_POWER_GAUGE]
    assert codes([*STEADY, blind], quantities=("power",)) == [DoubtCode.NO_POWER_GAUGE]
    told = Warning(seq=11, t_ns=1, code="no_power_gauge", message="no readable current_now")
    assert codes([*STEADY, told], quantities=("power",)) == [DoubtCode.NO_POWER_GAUGE], "the agent's word is its detail"
    assert codes([*STEADY, told, reading], quantities=("power",)) == [], "a meter stands in for the gauge"
    assert codes([*STEADY, reading], quantities=("power",)) == []


def test_a_resumed_run_says_so() -> None:
    assert codes(STEADY, resumed=True) == [DoubtCode.RESUMED]


def test_a_record_of_before_is_read_by_the_code_of_today() -> None:
    assert Doubt.model_validate_json('{"code": "unstable"}') == Doubt(code=DoubtCode.NOISY_SAMPLES)
    assert Doubt.model_validate({"code": "unstable"}).model_dump(mode="json")["code"] == "noisy_samples"
    with pytest.raises(ValidationError):
        Doubt.model_validate({"code": "unheard of"})


@pytest.mark.parametrize(
    ("block", "code", "words"),
    [
        (record(readings(load_between(0.5, 2.5))), None, ""),
        (record(series=(series(load_between(0.5, 2.5)),)), None, ""),
        (record(), DoubtCode.NO_ENERGY, "no readings of auto"),
        (record(readings(load_between(0.5, 2.5))[:1000]), DoubtCode.NO_ENERGY, "the trace covers"),
        (record(readings(load_between(0.5, 2.5)), phases=(), samples=()), DoubtCode.NO_ENERGY, "no load phase"),
        (record(readings(load_between(0.5, 2.5), current_ua=-(2**31))), DoubtCode.NO_ENERGY, "-2147483648"),
        (record(series=(series(load_between(0.5, 2.5), t_ns=(), power_w=(), lost="x"),)), DoubtCode.NO_ENERGY, "x"),
        (record(series=(series(load_between(0.5, 2.5), t_ns=(2, 1), power_w=(1, 1)),)), DoubtCode.NO_ENERGY, "no read"),
    ],
)
def test_power_that_was_asked_for_is_a_figure_or_a_reason(block: Record, code: DoubtCode | None, words: str) -> None:
    judged = with_validity(block, job("latency", "power"), None)
    assert judged.outcome is not Outcome.FAILED and judged.samples == block.samples
    found = [doubt for doubt in judged.doubts if doubt.code is DoubtCode.NO_ENERGY]
    assert [doubt.code for doubt in found] == ([code] if code else [])
    assert all(words in doubt.detail for doubt in found)
    if block.samples:
        assert with_validity(block, job("latency"), None).doubts == block.doubts


QUANTITIES = ("latency", "memory", "layers", "power")


@pytest.mark.parametrize("draw", range(12))
def test_each_quantity_that_was_asked_for_is_a_figure_or_named(seed: int, draw: int) -> None:
    """Whatever of them a phone and its meters told, and whatever the power was to be of."""
    rng = np.random.default_rng([seed, draw])
    asked = [name for name in QUANTITIES if rng.random() < 0.7] or ["power"]
    trace = load_between(0.5, 2.5)
    gauge = readings(trace, **({} if rng.random() < 0.5 else {"current_ua": None})) if rng.random() < 0.7 else ()
    meter = (series(trace, scope=rng.choice([*Scope])),) if rng.random() < 0.5 else ()
    memory = Memory(seq=0, t_ns=0, device_bytes=1, device_peak_bytes=2, vm_hwm_bytes=0, vm_rss_bytes=1)
    told: dict[str, Any] = {"memory": memory if rng.random() < 0.5 else None}
    told |= {} if rng.random() < 0.7 else {"samples": (), "phases": ()}
    block = record(gauge, series=meter, **told)
    wanted = job(*asked)
    source = rng.choice(["auto", *PowerSource])
    wanted = wanted.model_copy(update={"measure": wanted.measure.model_copy(update={"power_source": str(source)})})
    judged = with_validity(block, wanted, None)
    named = ", ".join(doubt.detail for doubt in judged.doubts if doubt.code is DoubtCode.QUANTITY_MISSING)
    held = {"latency": bool(block.samples), "memory": block.memory is not None, "layers": bool(block.layers)}
    assert {name for name in asked if not held.get(name, True)} == set(filter(None, named.split(", ")))
    energy = [doubt for doubt in judged.doubts if doubt.code is DoubtCode.NO_ENERGY]
    has_one = block_energy(block, wanted.measure.power_source) is not None
    assert bool(energy) is ("power" in asked and not has_one) and all(doubt.detail for doubt in energy)


def test_a_phone_that_a_meter_measures_needs_no_gauge() -> None:
    unmetered = find_doubts(job("power"), PHONE, STEADY, (COOL,), resumed=False)
    metered = find_doubts(job("power"), PHONE, STEADY, (COOL,), resumed=False, metered=True)
    assert {doubt.code for doubt in unmetered} - {doubt.code for doubt in metered} == {DoubtCode.NO_POWER_GAUGE}
