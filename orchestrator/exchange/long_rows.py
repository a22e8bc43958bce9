"""Records as rows in long form: one for each sample, layer's time, power reading, prediction or token, with its facts

Rows are made one after the other, so that any number of them needs the memory of one record. What a table of samples or
layers holds, `farm import samples` takes again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias

from orchestrator.energy import calibration, draw_of
from orchestrator.model import telemetry
from orchestrator.model.job import Cell
from orchestrator.model.record import Record

from .token_rows import token_rows

What = Literal["samples", "layers", "power", "predictions", "tokens"]
Kind = Literal["text", "whole", "number", "truth"]
Value: TypeAlias = "int | float | str | bool | None"
Row = dict[str, Value]

HEAD: dict[str, Kind] = {
    "experiment": "text", "device": "text", "source": "text", "network": "text", "layer": "text", "backend": "text",
    "precision": "text",
}  # fmt: skip
"""Columns before the axes."""
BLOCK: dict[str, Kind] = {"role": "text", "block": "whole", "attempt": "whole", "outcome": "text", "cause": "text"}
TAILS: dict[What, dict[str, Kind]] = {
    "samples": {"phase": "text", "index": "whole", "start_ns": "whole", "sample_ms": "number"},
    "layers": {"program": "text", "index": "whole", "repeat": "whole", "sample_ms": "number"},
    "power": {
        "phase": "text", "t_ns": "whole", "power_source": "text", "power_scope": "text", "power_name": "text",
        "power_w": "number", "current_a": "number", "voltage_v": "number", "battery_temp_c": "number",
        "battery_status": "text", "current_raw": "whole",
    },
    "predictions": {
        "example": "whole", "label": "whole", "top_1": "whole", "top_2": "whole", "top_3": "whole", "top_4": "whole",
        "top_5": "whole", "margin": "number",
    },
    "tokens": {
        "phase": "text", "index": "whole", "sequence": "whole", "place": "whole", "token": "whole",
        "t_ns": "whole", "token_ms": "number", "battery_temp_c": "number", "skin_temp_c": "number",
        "cpu_hz": "whole", "cpu_cap_hz": "whole", "gpu_hz": "whole", "gpu_cap_hz": "whole",
    },
}  # fmt: skip
"""Columns behind the axes and the block's own."""


def columns(what: What, cells: Iterable[Cell]) -> dict[str, Kind]:
    """Column -> kind of its values, in order; axes of all cells between, and of trainings the stage of an epoch. None
    stands for what is not known."""
    axes: dict[str, Kind] = {}
    stages: dict[str, Kind] = {}
    for cell in cells:
        for name, value in cell.options.items():
            axes[name] = _wider(axes.get(name), _kind(value))
        if cell.workload.training is not None and what == "samples":
            stages["stage"] = "text"
    return {**HEAD, **axes, **stages, **BLOCK, **TAILS[what]}


def _kind(value: object) -> Kind:
    if isinstance(value, bool):
        return "truth"
    return "whole" if isinstance(value, int) else "number" if isinstance(value, float) else "text"


def _wider(known: Kind | None, new: Kind) -> Kind:
    if known is None or known == new:
        return new
    return "number" if {known, new} == {"whole", "number"} else "text"


def rows(
    what: What, records: Iterable[Record], cells: Mapping[str, Cell], labels: Sequence[int] | None = None
) -> Iterator[Row]:
    """Rows of all records, of those that do not count too: their outcome says so. `labels`: of each example."""
    makers: dict[What, Callable[[Record], Iterator[Row]]] = {
        "samples": _samples, "layers": _layers, "power": _power, "predictions": partial(_predictions, labels=labels),
        "tokens": token_rows,
    }  # fmt: skip
    make = makers[what]
    for record in records:
        common = _common(record, cells[record.cell_id])
        for row in make(record):
            yield {**common, **row}


def _common(record: Record, cell: Cell) -> Row:
    return {
        "experiment": record.experiment_id,
        "device": record.device.serial,
        "source": record.source.value,
        "network": cell.workload.label,
        "layer": "",
        "backend": str(cell.backend),
        "precision": str(cell.precision),
        **cell.options,
        "role": record.role,
        "block": record.block,
        "attempt": record.attempt,
        "outcome": record.outcome.value,
        "cause": record.cause,
    }


def _samples(record: Record) -> Iterator[Row]:
    for sample in record.samples:
        yield {
            "phase": sample.phase,
            "index": sample.index,
            "start_ns": sample.start_ns,
            "sample_ms": sample.duration_ns / 1e6,
            **({"stage": sample.stage} if sample.stage else {}),
        }


def _layers(record: Record) -> Iterator[Row]:
    for layer in record.layers:
        yield {
            "layer": layer.layer,
            "program": layer.program,
            "index": layer.index,
            "repeat": layer.repeat,
            "sample_ms": layer.duration_ns / 1e6,
        }


def _power(record: Record) -> Iterator[Row]:
    """The gauge's readings as its calibration reads them (positive: the battery discharges), then other sources."""
    phases = sorted((phase.start_ns, phase.end_ns, phase.phase) for phase in record.phases)
    gauge = calibration(record)
    for reading in record.power:
        voltage_v = telemetry.cell_v(reading.voltage_uv)
        current_a = draw_of(reading.current_ua, voltage_v, gauge)
        yield {
            "phase": _phase(phases, reading.t_ns),
            "t_ns": reading.t_ns,
            "power_source": "gauge",
            "power_scope": "device",
            "power_name": gauge.method,
            "power_w": current_a * voltage_v if current_a is not None and voltage_v is not None else None,
            "current_a": current_a,
            "voltage_v": voltage_v,
            "battery_temp_c": telemetry.celsius_of_tenths(reading.temp_dc),
            "battery_status": reading.status,
            "current_raw": reading.current_ua,
        }
    for series in record.series:
        for t_ns, power_w in zip(series.t_ns, series.power_w, strict=True):
            yield {
                "phase": _phase(phases, t_ns),
                "t_ns": t_ns,
                "power_source": series.source.value,
                "power_scope": series.scope.value,
                "power_name": series.name,
                "power_w": power_w,
            }


def _predictions(record: Record, labels: Sequence[int] | None) -> Iterator[Row]:
    if (predictions := record.predictions) is None:
        return
    for place, (top, margin) in enumerate(zip(predictions.top, predictions.margins, strict=True), predictions.first):
        yield {
            "example": place,
            "label": None if labels is None else labels[place],
            **{f"top_{rank}": number for rank, number in enumerate(top, 1)},
            "margin": margin,
        }


def _phase(phases: Sequence[tuple[int, int, str]], t_ns: int) -> str:
    """The phase in which a time lies; empty between phases."""
    place = bisect_right(phases, t_ns, key=lambda phase: phase[0]) - 1
    return phases[place][2] if place >= 0 and t_ns <= phases[place][1] else ""
