"""Leases, sessions and records under way, as Redis holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric

from orchestrator.model.live.announcement import Phase, Progress
from orchestrator.model.live.lease import Lease


def lease_families(leases: Iterable[Lease]) -> Iterator[Metric]:
    """Yield who has a device: `claimed` by a worker, or `waking` while the message is under way."""
    count = GaugeMetricFamily("farm_leases", "Devices that are leased.", labels=("state",))
    expires = GaugeMetricFamily(
        "farm_lease_expires_timestamp_seconds",
        "When a device's lease runs out if it is not renewed.",
        labels=("serial",),
    )
    states = Counter({"claimed": 0, "waking": 0})
    for lease in leases:
        states["claimed" if lease.holder else "waking"] += 1
        expires.add_metric([lease.serial], lease.expires_at)
    for state, number in states.items():
        count.add_metric([state], number)
    yield from (count, expires)


def session_families(sessions: Iterable[Progress]) -> Iterator[Metric]:
    """Yield what the sessions do now."""
    family = GaugeMetricFamily("farm_sessions", "Sessions by what they do now.", labels=("phase",))
    found = list(sessions)
    phases = Counter(progress.phase for progress in found)
    for phase in get_args(Phase):
        family.add_metric([phase], phases[phase])
    yield family
    yield from _training(found)


def _training(sessions: Iterable[Progress]) -> Iterator[Metric]:
    """Yield how far trainings are."""
    labels = ("serial", "stage")
    loss = GaugeMetricFamily("farm_training_loss", "Mean loss of a training's latest epoch.", labels=labels)
    error = GaugeMetricFamily(
        "farm_training_error_ratio", "Share of wrong answers in a training's latest epoch.", labels=labels
    )
    epoch = GaugeMetricFamily("farm_training_epochs", "Epochs that are done of a training's stage.", labels=labels)
    for progress in sessions:
        if (learnt := progress.learnt) is not None:
            key = [progress.serial, learnt.stage]
            epoch.add_metric(key, learnt.epoch + 1)
            for family, value in ((loss, learnt.loss), (error, learnt.error)):
                if value is not None:
                    family.add_metric(key, value)
    yield from (loss, error, epoch)
