"""A family of metrics from its samples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Samples = Iterable[tuple[str | Sequence[str], float | None]]
"""The value of the label, or of all labels, with the figure; None: no sample."""


def gauge(name: str, text: str, labels: str | Sequence[str], samples: Samples) -> Metric:
    """Return a gauge. `labels`: their names, or one's."""
    return _filled(GaugeMetricFamily(name, text, labels=_several(labels)), samples)


def counter(name: str, text: str, labels: str | Sequence[str], samples: Samples) -> Metric:
    """Return a counter. `labels`: their names, or one's."""
    return _filled(CounterMetricFamily(name, text, labels=_several(labels)), samples)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, samples: Samples) -> Metric:
    for values, figure in samples:
        if figure is not None:
            family.add_metric(_several(values), figure)
    return family


def _several(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts
