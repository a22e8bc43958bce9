"""Leases, sessions and records under way, as Redis holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from prometheus_client.core import Metric

from orchestrator.model.live.announcement import Phase, Progress
from orchestrator.model.live.lease import Lease

from .family import gauge


def lease_families(leases: Iterable[Lease]) -> Iterator[Metric]:
    """Yield who has a device: `claimed` by a worker, or `waking` while the message is under way."""
    found = list(leases)
    states = Counter({"claimed": 0, "waking": 0})
    states.update("claimed" if lease.holder else "waking" for lease in found)
    yield gauge("farm_leases", "Devices that are leased.", "state", states.items())
    ends = ((lease.serial, lease.expires_at) for lease in found)
    text = "When a device's lease runs out if it is not renewed."
    yield gauge("farm_lease_expires_timestamp_seconds", text, "serial", ends)


def session_families(sessions: Iterable[Progress]) -> Iterator[Metric]:
    """Yield what the sessions do now, and how far trainings are."""
    found = list(sessions)
    phases = Counter(progress.phase for progress in found)
    samples = ((phase, phases[phase]) for phase in get_args(Phase))
    yield gauge("farm_sessions", "Sessions by what they do now.", "phase", samples)
    labels, learnt = ("serial", "stage"), [(each.serial, each.learnt) for each in found if each.learnt is not None]
    keyed = [((serial, epoch.stage), epoch) for serial, epoch in learnt]
    text = "Mean loss of a training's latest epoch."
    yield gauge("farm_training_loss", text, labels, ((key, epoch.loss) for key, epoch in keyed))
    text = "Share of wrong answers in a training's latest epoch."
    yield gauge("farm_training_error_ratio", text, labels, ((key, epoch.error) for key, epoch in keyed))
    text = "Epochs that are done of a training's stage."
    yield gauge("farm_training_epochs", text, labels, ((key, epoch.epoch + 1) for key, epoch in keyed))
