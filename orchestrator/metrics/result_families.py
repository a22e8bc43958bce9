"""Summaries of results as metrics, in base units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from orchestrator.analysis.statistics import QUANTITIES, Interval, Summary, Verdict, told_of
from orchestrator.model.job import AnyCell
from orchestrator.model.record import DoubtCode, Outcome

from .family import gauge


class ResultLabels(NamedTuple):
    """Labels of a result. Runs of one experiment are one series; experiments of different names never share one."""

    serial: str
    network: str
    backend: str
    precision: str
    options: str
    source: str
    experiment: str


Latest = Mapping[ResultLabels, tuple[Summary, float]]
"""The figures of each result, and when they were measured (Unix time)."""

LABELS = ResultLabels._fields
MOST_AGENTS = 20


def labels_of(summary: Summary, cell: AnyCell, mode: str, experiment: str) -> ResultLabels:
    """Return a result's labels. Its options are the cell's; before them stands what was timed, where that is no
    inference of the steady state: a cold start must not take the place of it, nor an epoch of a training."""
    timed = "training" if cell.workload.training else mode
    first = [] if timed == "steady" else [f"mode={timed}"]
    options = " ".join([*first, *(f"{name}={value}" for name, value in sorted(cell.options.items()))])
    measured = (summary.serial, summary.workload, summary.backend, summary.precision, options, summary.source.value)
    return ResultLabels(*measured, experiment)


def result_families(latest: Latest) -> Iterator[Metric]:
    """All families of results."""
    yield from _figures(latest)
    yield from _trust(latest)


def agents_family(agents: Iterable[str]) -> Metric:
    """Count, over all results, the agents that measured the newest block; records that do not say are left out."""
    found = Counter(filter(None, agents)).most_common(MOST_AGENTS)
    return gauge("farm_results_by_agent", "Results whose newest block this agent measured.", "agent", found)


def _figures(latest: Latest) -> Iterator[Metric]:
    """A family for each quantity that is declared. What is not resolved has no sample."""
    families: dict[str, GaugeMetricFamily] = {}
    for metric, quantity in QUANTITIES.items():
        names = (*LABELS, *quantity.labels, "stat")
        families[metric] = GaugeMetricFamily(quantity.family, f"{quantity.says()} Latest figures.", labels=names)
    for key, (summary, _) in latest.items():
        for told in told_of(summary):
            if told.value is None:
                continue
            stats = {"median": told.value, **_interval(told.interval)}
            if told.metric == "latency" and summary.latency and summary.latency.p90_ms is not None:
                stats["p90"] = summary.latency.p90_ms
            labels = [told.labels[name] for name in QUANTITIES[told.metric].labels]
            for stat, value in stats.items():
                families[told.metric].add_metric([*key, *labels, stat], value * QUANTITIES[told.metric].base)
    yield from families.values()


def _interval(found: Interval | None) -> dict[str, float]:
    return {} if found is None else {"interval_low": found.low, "interval_high": found.high}


def _trust(latest: Latest) -> Iterator[Metric]:
    blocks = ((key, summary.outcomes.get(Outcome.OK, 0)) for key, (summary, _) in latest.items())
    yield gauge("farm_results_blocks", "Blocks behind the latest figures.", LABELS, blocks)
    measured = ((key, at) for key, (_, at) in latest.items())
    yield gauge("farm_results_timestamp_seconds", "When the latest figures were measured.", LABELS, measured)
    verdicts = (
        ((*key, each), summary.stability.verdict is each)
        for key, (summary, _) in latest.items()
        if summary.stability is not None
        for each in Verdict
    )
    text = "1 for what the latest figures' blocks say of their stability, 0 for the others."
    yield gauge("farm_results_verdict", text, (*LABELS, "verdict"), verdicts)
    codes = {key: {doubt.code for doubt in summary.doubts} for key, (summary, _) in latest.items()}
    kinds = ((key, len(found)) for key, found in codes.items())
    yield gauge("farm_results_doubts", "Kinds of warning about the latest figures.", LABELS, kinds)
    counted = Counter[str](dict.fromkeys(DoubtCode, 0))
    counted.update(code for found in codes.values() for code in found)
    text = "Results whose latest figures have this warning."
    yield gauge("farm_results_doubted", text, "doubt", counted.items())
