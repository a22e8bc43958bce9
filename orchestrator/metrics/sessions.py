"""Leases, sessions and records under way, as Redis holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric

from orchestrator.model.lease import Lease
from orchestrator.model.live import Phase, Progress


def lease_families(leases: Iterable[Lease]) -> Iterator[Metric]:
    """Who has a device: `claimed` by a worker, or `waking` while the message is under way."""
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
    """What the sessions do now."""
    family = GaugeMetricFamily("farm_sessions", "Sessions by what they do now.", labels=("phase",))
    phases = Counter(progress.phase for progress in sessions)
    for phase in get_args(Phase):
        family.add_metric([phase], phases[phase])
    yield family
