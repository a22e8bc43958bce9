"""Runs of queueing experiments as metrics: the newest one of each, with the figures that `farm queue show` has."""

from __future__ import annotations

import pytest

from orchestrator.ledger import Ledger, QueueRunBody
from orchestrator.metrics.queueing import queueing_families
from orchestrator.queueing.kept import data_of, read_run
from tests.integration.metrics.content import device, queueing_run
from tests.unit.comparison.conftest import farm, ledger

__all__ = ["farm", "ledger"]
pytestmark = pytest.mark.unit


def scraped(ledger: Ledger) -> dict[str, dict[tuple[str, ...], float]]:
    with ledger._database.read() as connection:
        families = list(queueing_families(connection))
    return {
        family.name.removeprefix("farm_queueing_"): {tuple(each.labels.values()): each.value for each in family.samples}
        for family in families
    }


def test_the_newest_run_counts_with_its_own_figures(ledger: Ledger) -> None:
    assert all(not samples for samples in scraped(ledger).values())
    newest = queueing_run(ledger, device("nexus-5", 1), seed=2, began_at=2e9, doubts=("its gauge is slow",))
    queueing_run(ledger, device("nexus-5", 1), seed=1, began_at=1e9)
    found, shown = scraped(ledger), data_of(read_run(ledger, newest))
    told = shown["all"]
    key = ("burst", "fifo", "virtual")
    assert found["timestamp_seconds"] == {key: 2e9}
    assert found["doubts"] == {key: len(shown["doubts"])} and "its gauge is slow" in shown["doubts"]
    assert found["offered_per_second"][key] == pytest.approx(140, rel=0.1)
    assert 0 < found["throughput_per_second"][key] < found["offered_per_second"][key]
    wanted = {
        "throughput_per_second": "throughput_per_s",
        "utilisation_ratio": "utilisation",
        "dropped_ratio": "drop_share",
        "energy_per_request_joules": "energy_j_per_request",
    }
    for family, figure in wanted.items():
        assert found[family] == {key: pytest.approx(told[figure]["value"])} and found[family][key] > 0
    for stat in ("mean", "p50", "p99"):
        assert found["sojourn_seconds"][*key, stat] == pytest.approx(told["sojourn_s"][stat]["value"])


def test_a_run_of_an_older_farm_has_the_figures_that_it_has(ledger: Ledger) -> None:
    """One that cannot be read does not hide the others."""
    old = b'{"policy": "jsq", "throughput_per_s": 9.0, "sojourn_s": {"mean": 0.1, "p99": 0.4}, "drop_share": 0.0}'
    body = QueueRunBody(b"{}", b"", b"")
    ledger.queue_runs.keep("old", 1.0, "phone", 90, old, body)
    ledger.queue_runs.keep("odd", 2.0, "phone", 90, b"[]", body)
    found, key = scraped(ledger), ("old", "jsq", "phone")
    assert found["requests"] == {key: 90} and found["throughput_per_second"] == {key: 9.0}
    assert found["sojourn_seconds"] == {(*key, "mean"): 0.1, (*key, "p99"): 0.4}
    assert found["offered_per_second"] == {} == found["utilisation_ratio"] == found["doubts"]
