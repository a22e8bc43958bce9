"""Run a spec: its replications, what they say, and theory beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .measured import TimesUsed
from .measures import Measured, measure
from .oracle import theory_of
from .requests import Run
from .simulation import simulate
from .spec import QueueingSpec


def run_simulated(spec: QueueingSpec) -> list[Run]:
    """All replications, each with a seed of its own that follows from the spec's. Raises SpecError."""
    seeds = np.random.SeedSequence(spec.seed).spawn(spec.replications)
    return [simulate(spec, seed) for seed in seeds]


def run_and_measure(spec: QueueingSpec) -> Measured:
    """The same, measured."""
    return measure(spec, run_simulated(spec))


def as_data(spec: QueueingSpec, measured: Measured, used: Sequence[TimesUsed] = ()) -> dict[str, Any]:
    """The answer of `farm queue --json`."""
    return {
        "name": spec.name,
        "source": "simulated",
        "policy": spec.policy.name or spec.policy.file,
        "classes": {name: each.model_dump() for name, each in measured.classes.items()},
        "all": measured.total.model_dump(),
        "warm_up_s": list(measured.cuts_s),
        "theory": [vars(each) for each in theory_of(spec)],
        "times": [vars(each) for each in used],
        "doubts": list(measured.doubts),
    }
