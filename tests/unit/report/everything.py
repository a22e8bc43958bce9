"""An experiment that has something to say in every part of a report."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from orchestrator.model.device import Api, Source
from orchestrator.model.event import Sample
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment, Measure, Sampling, Workload
from orchestrator.model.job import Cell
from orchestrator.model.power import PowerSeries, PowerSource, Scope
from orchestrator.model.record import (
    ConditionProof,
    InvalidCode,
    Invalidity,
    LayerMemory,
    Outcome,
    Record,
)

from .records import MS, Whole, built, cell, powered, record

PHONES = {
    "R58M91XKPVJ": (Source.PHONE, "SM-G930F", 1.0),
    "HT7A21A00417": (Source.PHONE, "Pixel 7", 0.6),
    "galaxy-s7-1": (Source.VIRTUAL, "SM-G930F", 1.3),
}
CELLS = (cell(), cell(network="squeezenet_v1_0"), cell(Api.VULKAN))
CANARY = cell(network="cifar10_quick")
BASE_MS = {CELLS[0].cell_id: 12.0, CELLS[1].cell_id: 140.0, CELLS[2].cell_id: 15.0}
LAYERS = ("conv1", "fire2/squeeze1x1", "fire2/expand3x3", "fire3/squeeze1x1", "fire4/expand3x3", "conv10", "pool10")


def content(blocks: int = 6, mode: str = "steady", seed: int = 3, phones: Iterable[str] = tuple(PHONES)) -> Whole:
    """Three phones, three cells, canaries; one phone has drift, one invalid blocks, one an external meter."""
    generator = np.random.default_rng(seed)
    records = [each for serial in phones for each in _of_phone(serial, blocks, mode, generator)]
    sampling = {
        "steady": {},
        "cold": {"mode": "cold"},
        "sustained": {"mode": "sustained", "load": 600, "deadline": 800},
    }
    wanted = Experiment(
        name="rich",
        description="Everything that a report can show.",
        workload=Workload(network="lenet"),
        measure=Measure(quantities=("latency", "memory", "layers", "power")),
        sampling=Sampling(blocks=3, target_interval=0.02, max_blocks=6, canary=4, **sampling[mode]),
    )
    return built(
        "rich-1",
        wanted,
        cells={each.cell_id: each for each in (*CELLS, CANARY)},
        records=records,
        outcomes={"ok": len(records)},
        exclusions=[Exclusion("R58M91XKPVJ", "lenet cpu fp16", "cpu has no fp16")],
        now=1.8e9,
    )


def _of_phone(serial: str, blocks: int, mode: str, generator: np.random.Generator) -> list[Record]:
    source, model, slow = PHONES[serial]
    found, at = [], 0
    for number in range(blocks):
        for one in CELLS:
            drift = 1 + 0.03 * number if serial == "HT7A21A00417" else 1.0
            found.append(_block(one, serial, source, model, number, at, slow * drift, mode, generator))
            at += 1
        if number % 2 == 0:
            found.append(_canary(serial, source, model, number, at, slow, generator))
            at += 1
    return found


def _block(
    one: Cell, serial: str, source: Source, model: str, number: int, at: int, slow: float, mode: str,
    generator: np.random.Generator,
) -> Record:  # fmt: skip
    base = BASE_MS[one.cell_id] * slow
    timed = list(base * np.exp(generator.normal(0, 0.03, 30)) * (1 + 0.5 * (generator.random(30) < 0.05)))
    plain = record(one, timed[:1] if mode == "cold" else timed, block=number, serial=serial, token=at + 1,
                   source=source, model=model)  # fmt: skip
    noise = list(generator.normal(0, 0.12, 301))
    found = powered(plain, 0.9, 2.4 + 0.2 * slow, noise=noise, calibrated=serial != "R58M91XKPVJ")
    if mode == "sustained":
        found = found.model_copy(update={"samples": _sustained(base, generator)})
    found = found.model_copy(update={"layer_memory": _layers(), "conditions": _proofs(serial)})
    if serial == "HT7A21A00417":
        found = found.model_copy(update={"series": (_meter(found),)})
    if serial == "galaxy-s7-1" and number == 2:
        told = Invalidity(code=InvalidCode.CHARGING, detail="status Charging from 12.1 s on")
        found = found.model_copy(update={"outcome": Outcome.INVALID, "cause": "charging", "invalid": (told,)})
    return found


def _sustained(base_ms: float, generator: np.random.Generator) -> tuple[Sample, ...]:
    samples, t, index = [], 0.0, 0
    while t < 600:
        duration = base_ms * 40 * (1 + 0.35 / (1 + np.exp(-(t - 240) / 30))) * (1 + generator.normal(0, 0.02))
        samples.append(
            Sample(seq=0, t_ns=0, index=index, phase="timed", start_ns=int(t * 1e9), duration_ns=int(duration * MS))
        )
        t, index = t + duration / 1e3, index + 1
    return tuple(samples)


def _canary(
    serial: str, source: Source, model: str, number: int, at: int, slow: float, generator: np.random.Generator
) -> Record:
    factor = 1 + (0.04 * number if serial == "HT7A21A00417" else 0.0)
    timed = list(2.0 * slow * factor * np.exp(generator.normal(0, 0.01, 10)))
    one = powered(
        record(CANARY, timed, block=number, serial=serial, token=at + 1, source=source, model=model), 0.9, 2.0
    )
    return one.model_copy(update={"role": "canary", "power": (), "phases": (), "job_id": f"canary-{serial}-{number}"})


def _layers() -> tuple[LayerMemory, ...]:
    return tuple(
        LayerMemory(layer=name, live_bytes=(7 - i) * 300_000, weight_bytes=40_000 + 60_000 * (i % 3))
        for i, name in enumerate(LAYERS)
    )


def _proofs(serial: str) -> tuple[ConditionProof, ...]:
    return (
        ConditionProof(name="airplane_mode", wanted="on", before="off", held="on", proven=True, restored=True),
        ConditionProof(name="supply", wanted="discharging", held="Discharging", proven=serial != "R58M91XKPVJ"),
    )


def _meter(of: Record) -> PowerSeries:
    times = tuple(reading.t_ns for reading in of.power)
    watts = tuple(-(r.current_ua or 0) * 4e-6 * 1.08 for r in of.power)
    return PowerSeries(source=PowerSource.METER, scope=Scope.DEVICE, name="Monsoon 12345", t_ns=times, power_w=watts)
