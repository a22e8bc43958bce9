"""Derive the figures of a block from its record. Pure: the same record, cell and mode give the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from orchestrator.energy import BlockEnergy, block_energy, stage_windows
from orchestrator.model.base import like
from orchestrator.model.event import Sample
from orchestrator.model.job import Cell
from orchestrator.model.power import Estimate
from orchestrator.model.record import Record

from .answers import answer_of
from .block import BlockFigures, Course, Energy, Epoch, LayerTime, Memory, PerLayer, Rate, Stage, Trained, Value
from .course import course_of
from .quantities import QUANTITIES
from .times import NS_PER_MS, mean_of, timed_ms, times_of

MOST_EPOCHS = 200
"""The epochs of a training that a row holds, about."""
_READ = [(name, each.of) for name, each in QUANTITIES.items() if each.of is not None]
"""Quantities that a record gives by itself."""
_OF_LOAD = [(name, each.of_load) for name, each in QUANTITIES.items() if each.of_load is not None]
"""Quantities that a sustained load gives."""


def figures_of(record: Record, cell: Cell, *, sustained: bool = False) -> BlockFigures:
    """The figures of a block. `sustained`: whether that is the mode of its experiment."""
    timed = [sample for sample in record.samples if sample.phase == "timed"]
    first = record.samples[0] if record.samples else None
    times, energy = timed_ms(record), block_energy(record)
    course = course_of(record, timed) if sustained else None
    device, reading = record.device, record.state_before.reading if record.state_before else None
    return like(
        BlockFigures,
        record,
        serial=device.serial,
        model=device.model,
        profile=device.profile,
        boot_id=device.boot_id,
        fingerprint="" if record.provenance.fingerprint else device.fingerprint,
        battery_cycles=reading.battery_cycles if reading else None,
        times=times_of(times, means=any(sample.mean_of > 1 for sample in timed)),
        inferences=sum(sample.runs for sample in timed),
        stream=any(sample.inferences > 1 for sample in record.samples),
        rate=_rate(timed, cell.batch or 1) if cell.workload.training is None else None,  # a sample is an epoch
        setup_ns=_setup_ns(record),
        setup_cached=any(step.cached for step in record.setup),
        first_ns=0 if first is None else None if first.inferences > 1 else first.duration_ns,
        first_timed_ms=times[0] if times else 0.0,
        memory=_memory(record),
        values={name: value for name, of in _READ if (value := of(record)) is not None} | _values_of_load(course),
        pass_ms=_pass_ms(record),
        energy=_energy(energy),
        course=course,
        per_layer=_per_layer(record),
        psnr_db=min((each.psnr_db for each in record.checks if each.psnr_db is not None), default=None),
        answer=answer_of(record),
        trained=_trained(record, energy),
    )


def _trained(record: Record, found: BlockEnergy | None) -> Trained | None:
    epochs = [
        Epoch(stage=one.stage, epoch=one.epoch or 0, loss=one.loss, error=one.error, ms=one.duration_ns / NS_PER_MS)
        for one in (*record.earlier, *record.samples)
        if one.stage
    ]
    if not epochs:
        return None
    apart = -(-len(epochs) // MOST_EPOCHS)
    ends = {i for i, (one, two) in enumerate(pairwise(epochs)) if one.stage != two.stage} | {len(epochs) - 1}
    shown = tuple(each for i, each in enumerate(epochs) if i % apart == 0 or i in ends or i - 1 in ends)
    return Trained(epochs=shown, count=len(epochs), stages=tuple(_stages(record, found)), model=record.trained)


def _stages(record: Record, found: BlockEnergy | None) -> Iterator[Stage]:
    known = {each.name: each.net_j for each in found.stages} if found else {}
    for name, epochs, window in stage_windows(record):
        net_j = known.get(name)
        ms = window.length_s * 1e3 / epochs
        yield Stage(name=name, epochs=epochs, epoch_ms=ms, epoch_j=None if net_j is None else net_j / epochs)


def _rate(timed: Sequence[Sample], batch: int) -> Rate | None:
    rates = [s.inferences * batch * 1e9 / s.duration_ns for s in timed if s.duration_ns > 0]
    if not rates:
        return None
    frames = max(sample.inferences * batch for sample in timed)
    return Rate(samples=len(rates), frames=frames, median_per_s=median(rates), slowest_per_s=min(rates))


def _setup_ns(record: Record) -> dict[str, int]:
    spent: dict[str, int] = {}
    for step in record.setup:
        spent[step.step] = spent.get(step.step, 0) + step.duration_ns
    return spent


def _memory(record: Record) -> Memory | None:
    use = record.memory
    if use is None:
        return None
    return Memory(device_peak_bytes=use.device_peak_bytes, vm_hwm_bytes=use.vm_hwm_bytes, pss_bytes=use.pss_bytes)


def _energy(found: BlockEnergy | None) -> Energy | None:
    if found is None:
        return None
    return like(
        Energy,
        found,
        per_inference_j=_value(found.per_inference_j),
        gross_per_inference_j=_value(found.gross_per_inference_j),
        per_token_j={f"{each.name} energy": _known(each.per_token_j) for each in found.phases},
        load_power_w=_known(found.load_power_w),
        idle_power_w=_value(found.idle_power_w),
    )


def _value(estimate: Estimate | None) -> Value | None:
    return None if estimate is None else _known(estimate)


def _known(estimate: Estimate) -> Value:
    return Value(value=estimate.value, std=estimate.std, systematic=estimate.systematic)


def _values_of_load(course: Course | None) -> dict[str, float]:
    found = course.plateau if course else None
    return {name: value for name, of in _OF_LOAD if found and (value := of(found)) is not None}


def _pass_ms(record: Record) -> float | None:
    passes: dict[int, float] = {}
    for layer in record.layers:
        passes[layer.repeat] = passes.get(layer.repeat, 0.0) + layer.duration_ns / NS_PER_MS
    return median(passes.values()) if passes else None


def _per_layer(record: Record) -> PerLayer | None:
    steps: dict[tuple[int, str, str], list[float]] = {}
    layers: dict[str, dict[int, float]] = {}
    for layer in record.layers:
        time_ms = layer.duration_ns / NS_PER_MS
        steps.setdefault((layer.index, layer.layer, layer.program), []).append(time_ms)
        passes = layers.setdefault(layer.layer, {})
        passes[layer.repeat] = passes.get(layer.repeat, 0.0) + time_ms
    if not steps and not record.layer_memory:
        return None
    return PerLayer(
        steps=tuple(
            LayerTime(index=index, layer=layer, program=program, median_ms=median(times))
            for (index, layer, program), times in sorted(steps.items())
        ),
        layers={name: mean_of(list(passes.values())) for name, passes in layers.items()},
        planned=record.layer_memory,
    )
