"""Tell the quantities of a result, which `orchestrator/figures/quantities.py` declares: value and interval of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orchestrator.figures import QUANTITIES

from .energies import EnergyUse, Figure
from .intervals import Interval
from .resolution import Unresolved
from .summary import Summary


@dataclass(frozen=True)
class Told:
    """One quantity of a result, as every output tells it."""

    metric: str
    """The name in `QUANTITIES`."""
    value: float | None
    """None where it is not resolved."""
    interval: Interval | None = None
    unresolved: Unresolved | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of Prometheus that tell figures of one metric apart."""

    @property
    def basis(self) -> str:
        """`cached`, `device`, `net gauge device`: what tells figures of one metric apart."""
        return " ".join(text for name, text in self.labels.items() if text and name != "gain")

    @property
    def unit(self) -> str:
        return QUANTITIES[self.metric].unit


def told_of(summary: Summary) -> tuple[Told, ...]:
    """Every quantity that was measured, resolved or not."""
    return tuple(_told(summary))


def _told(summary: Summary) -> Iterator[Told]:
    if (of := summary.latency) is not None:
        yield Told("latency", of.median_ms, of.interval_ms, of.unresolved)
    if (cold := summary.cold) is not None:
        yield Told("first result", cold.total_ms, cold.interval_ms, cold.unresolved)
    if (rate := summary.throughput) is not None:
        yield Told("throughput", rate.frames_per_s, rate.interval_per_s, rate.unresolved)
    for use in summary.setup:
        yield Told("setup", use.total_ms, labels={"state": use.kind})
    if (memory := summary.memory) is not None:
        sizes = {"device": memory.device_peak_bytes, "process": memory.vm_hwm_bytes, "pss": memory.pss_bytes}
        yield from (Told("memory", size, labels={"kind": kind}) for kind, size in sizes.items() if size is not None)
    for energy in summary.energy:
        yield from _energy(energy)
    yield from (Told(name, of.value, of.interval, of.unresolved) for name, of in summary.others.items())


def _energy(use: EnergyUse) -> Iterator[Told]:
    by = {
        "power_source": use.source.value, "scope": use.scope.value, "meter": use.name,
        "gain": "known" if use.absolute else "relative",
    }  # fmt: skip
    for basis, per in {"net": use.per_inference_j, "gross": use.gross_per_inference_j}.items():
        yield from _figure("energy", per, {"basis": basis, **by})
    for name, per in use.per_token_j.items():
        yield from _figure(name, per, {"basis": "net", **by})
    for phase, power in {"load": use.load_power_w, "idle": use.idle_power_w}.items():
        yield from _figure("power", power, {"phase": phase, **by})


def _figure(metric: str, figure: Figure | None, labels: dict[str, str]) -> Iterator[Told]:
    if figure is not None:
        yield Told(metric, figure.value, figure.total, figure.unresolved, labels)
