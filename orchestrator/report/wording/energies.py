"""Energies of inferences as text: where they were measured, and what they contain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.model.device import Source
from orchestrator.model.power import PowerSource, Scope

from .intervals import figure
from .results import source_word

if TYPE_CHECKING:
    from orchestrator.analysis.statistics import EnergyPerInference, EnergyUse, Summary

SOURCES = {
    PowerSource.GAUGE: "battery gauge",
    PowerSource.ODPM: "power rails (ODPM)",
    PowerSource.PERFETTO: "power rails (perfetto)",
    PowerSource.METER: "external meter",
    PowerSource.RAPL: "RAPL counter",
    PowerSource.NVML: "NVML counter",
    PowerSource.MODEL: "MODEL of a virtual phone",
    PowerSource.TRACE: "imported trace",
}
SCOPES = {
    Scope.DEVICE: "whole device",
    Scope.RAILS: "some rails",
    Scope.PACKAGE: "CPU package",
    Scope.BOARD: "graphics board",
}


def power_source(source: PowerSource, record_source: Source) -> str:
    """`battery gauge`; with what is no device's own in capitals: `battery gauge (VIRTUAL: modelled)`."""
    word = source_word(record_source)
    if record_source is Source.VIRTUAL:
        return f"{SOURCES[source]} (VIRTUAL: modelled power)"
    return f"{SOURCES[source]} ({word})" if word.isupper() else SOURCES[source]


def short_source(use: EnergyUse, record_source: Source) -> str:
    """`gauge`, `meter`; `gauge, relative` where the gain is not known; `gauge, MODELLED` of a virtual phone."""
    made_up = record_source is Source.VIRTUAL or use.source is PowerSource.MODEL
    return f"{use.source}{', MODELLED' if made_up else '' if use.absolute else ', relative'}"


def energy(per_inference: EnergyPerInference | None) -> tuple[str, str]:
    """`45.6 mJ net` and its interval; what stands in their place where it is not resolved; empty where there is none.
    What a figure contains is always said beside it."""
    if per_inference is None:
        return "", ""
    of = per_inference.figure_j
    value, interval = figure(of.value, of.total, of.unresolved, "J")
    return (value if of.unresolved else f"{value} {per_inference.basis}"), interval


def energy_basis(found: Iterable[EnergyPerInference | None]) -> str:
    """A sentence on what these energies contain: net, gross, or both among them."""
    bases = {per_inference.basis for per_inference in found if per_inference is not None}
    net = "the idle power, measured before and after the load, is subtracted"
    gross = "the idle power is in it, because no block rested (`sampling.idle` adds rests)"
    if bases == {"net", "gross"}:
        return f"Net: {net}. Gross: {gross}. The two do not compare."
    return f"Gross: {gross}." if bases == {"gross"} else f"Net: {net}."


class EnergyRow(NamedTuple):
    """A cell on a device with its energy by one source."""

    summary: Summary
    use: EnergyUse


def energy_groups(summaries: Iterable[Summary]) -> dict[str, list[EnergyRow]]:
    """Energies by what may stand side by side: source, scope and kind of record, as a title."""
    groups: dict[str, list[EnergyRow]] = {}
    for summary in summaries:
        for use in summary.energy:
            title = f"{power_source(use.source, summary.source)}, {SCOPES[use.scope]}"
            groups.setdefault(title, []).append(EnergyRow(summary, use))
    return groups
