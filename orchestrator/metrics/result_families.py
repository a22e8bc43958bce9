"""Summaries of results as metrics, in base units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from orchestrator.analysis.statistics import EnergyUse, Figure, Interval, Summary, Verdict
from orchestrator.model.record import DoubtCode, Outcome


class ResultLabels(NamedTuple):
    """Labels of a result."""

    serial: str
    network: str
    backend: str
    precision: str
    options: str
    source: str


Latest = Mapping[ResultLabels, tuple[Summary, float]]
"""The figures of each result, and when they were measured (Unix time)."""

LABELS = ResultLabels._fields
MOST_AGENTS = 20
POWER_LABELS = ("power_source", "scope", "meter", "gain")


def result_families(latest: Latest) -> Iterator[Metric]:
    """All families of results."""
    yield from _times(latest)
    yield _memory(latest)
    yield from _energy(latest)
    yield from _trust(latest)


def agents_family(agents: Iterable[str]) -> Metric:
    """By which agents the newest blocks were measured, of all results; records that do not say are left out."""
    family = GaugeMetricFamily(
        "farm_results_by_agent", "Results whose newest block this agent measured.", labels=("agent",)
    )
    for agent, number in Counter(filter(None, agents)).most_common(MOST_AGENTS):
        family.add_metric([agent], number)
    return family


def _times(latest: Latest) -> Iterator[Metric]:
    latency = GaugeMetricFamily(
        "farm_results_latency_seconds",
        "Latency of one inference, or time of an epoch of a training, latest figures.",
        labels=(*LABELS, "stat"),
    )
    throughput = GaugeMetricFamily(
        "farm_results_throughput_frames_per_second", "Frames per second of streams, latest figures.", labels=LABELS
    )
    setup = GaugeMetricFamily(
        "farm_results_setup_seconds", "From a fresh process to its first inference, latest figures.", labels=LABELS
    )
    for key, (summary, _) in latest.items():
        if (found := summary.latency) is not None:
            stats = {"median": found.median_ms, "p90": found.p90_ms, **_interval(found.interval_ms)}
            for stat, value_ms in stats.items():
                latency.add_metric([*key, stat], value_ms / 1e3)
        if summary.throughput is not None:
            throughput.add_metric(key, summary.throughput.frames_per_s)
        if summary.setup_total_ms is not None:
            setup.add_metric(key, summary.setup_total_ms / 1e3)
    yield from (latency, throughput, setup)


def _interval(found: Interval | None) -> dict[str, float]:
    return {} if found is None else {"interval_low": found.low, "interval_high": found.high}


def _memory(latest: Latest) -> Metric:
    family = GaugeMetricFamily(
        "farm_results_memory_bytes",
        "Memory, latest figures: device_peak is the agent's own allocations, resident_peak its VmHWM, pss its Pss.",
        labels=(*LABELS, "kind"),
    )
    for key, (summary, _) in latest.items():
        if (use := summary.memory) is not None:
            figures = {"device_peak": use.device_peak_bytes, "resident_peak": use.vm_hwm_bytes, "pss": use.pss_bytes}
            for kind, size in figures.items():
                if size is not None:
                    family.add_metric([*key, kind], size)
    return family


def _energy(latest: Latest) -> Iterator[Metric]:
    energy = GaugeMetricFamily(
        "farm_results_energy_per_inference_joules",
        "Energy of one inference by each source of power, latest figures; net of the idle power, or gross.",
        labels=(*LABELS, *POWER_LABELS, "basis", "stat"),
    )
    power = GaugeMetricFamily(
        "farm_results_power_watts",
        "Mean power by each source of power, latest figures: under load, and idle before and after it.",
        labels=(*LABELS, *POWER_LABELS, "phase", "stat"),
    )
    for key, (summary, _) in latest.items():
        for use in summary.energy:
            by = [*key, use.source.value, use.scope.value, use.name, "known" if use.absolute else "relative"]
            _add_figures(energy, by, {"net": use.per_inference_j, "gross": use.gross_per_inference_j})
            _add_figures(power, by, _powers(use))
    yield from (energy, power)


def _powers(use: EnergyUse) -> dict[str, Figure | None]:
    return {"load": use.load_power_w, "idle": use.idle_power_w}


def _add_figures(family: GaugeMetricFamily, labels: list[str], figures: Mapping[str, Figure | None]) -> None:
    """Each figure's value and the interval that the report shows: with the gain's uncertainty, where that is known."""
    for name, figure in figures.items():
        if figure is not None:
            for stat, value in {"median": figure.value, **_interval(figure.total)}.items():
                family.add_metric([*labels, name, stat], value)


def _trust(latest: Latest) -> Iterator[Metric]:
    blocks = GaugeMetricFamily("farm_results_blocks", "Blocks behind the latest figures.", labels=LABELS)
    measured = GaugeMetricFamily(
        "farm_results_timestamp_seconds", "When the latest figures were measured.", labels=LABELS
    )
    verdict = GaugeMetricFamily(
        "farm_results_verdict",
        "1 for what the latest figures' blocks say of their stability, 0 for the others.",
        labels=(*LABELS, "verdict"),
    )
    doubts = GaugeMetricFamily("farm_results_doubts", "Kinds of doubt about the latest figures.", labels=LABELS)
    doubted = GaugeMetricFamily(
        "farm_results_doubted", "Results whose latest figures have this doubt.", labels=("doubt",)
    )
    counted = Counter(dict.fromkeys(DoubtCode, 0))
    for key, (summary, at) in latest.items():
        blocks.add_metric(key, summary.outcomes.get(Outcome.OK, 0))
        measured.add_metric(key, at)
        if summary.stability is not None:
            for each in Verdict:
                verdict.add_metric([*key, each], summary.stability.verdict is each)
        codes = {doubt.code for doubt in summary.doubts}
        doubts.add_metric(key, len(codes))
        counted.update(codes)
    for code, number in counted.items():
        doubted.add_metric([code], number)
    yield from (blocks, measured, verdict, doubts, doubted)
