"""Run a spec: its replications, what they say, and theory beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .learnt import Body
from .measured import TimesUsed
from .measures import Measured, measure, spanning
from .network_oracle import no_product_form
from .oracle import theory_of
from .policies import make_policy
from .requests import Run
from .simulation import simulate
from .spec import PolicyChoice, QueueingSpec

UNSURE = "what is known of heat leaves open"


def run_simulated(spec: QueueingSpec) -> list[Run]:
    """All replications, each with a seed of its own that follows from the spec's. Raises SpecError."""
    seeds = np.random.SeedSequence(spec.seed).spawn(spec.replications)
    return [simulate(spec, seed) for seed in seeds]


def run_and_measure(spec: QueueingSpec) -> Measured:
    """The same, measured."""
    return measure_runs(spec, run_simulated(spec))


def measure_runs(spec: QueueingSpec, runs: Sequence[Run]) -> Measured:
    """Measure simulated runs, beside those in which heat is as far off as the spec calls it unsure."""
    told = [(each, run_simulated(each)) for each in spec.others()]
    found = spanning(measure(spec, runs), [measure(*each) for each in told], UNSURE)
    hotter = [doubt for _, others in told for run in others for doubt in run.doubts]
    if hotter and not any(run.doubts for run in runs):
        found = replace(found, doubts=(*found.doubts, f"{UNSURE} that {hotter[0]}"))
    return found


def compare_policies(spec: QueueingSpec, names: Sequence[str]) -> list[tuple[QueueingSpec, Measured]]:
    """The spec under each policy, with the same arrivals and sizes. Raises SpecError: there is no such policy.

    Options are the spec's own for its own policy, and the defaults of the others.
    """
    choices = [spec.policy if name == spec.policy.name else PolicyChoice(name=name) for name in names]
    for choice in choices:
        make_policy(choice, 0)
    under = [spec.model_copy(update={"policy": choice}) for choice in choices]
    return [(each, run_and_measure(each)) for each in under]


def as_data(
    spec: QueueingSpec,
    measured: Measured,
    used: Sequence[TimesUsed] = (),
    bodies: Sequence[Body] = (),
    source: str = "simulated",
) -> dict[str, Any]:
    """The answer of `farm queue --json`."""
    return {
        "name": spec.name,
        "source": source,
        "policy": spec.policy.name or spec.policy.file,
        "classes": {name: each.model_dump() for name, each in measured.classes.items()},
        "stations": {name: each.model_dump() for name, each in measured.stations.items()},
        "all": measured.total.model_dump(),
        "warm_up_s": measured.cut_s,
        "theory": [vars(each) for each in theory_of(spec)],
        "no_theory": no_product_form(spec) if spec.stations else [],
        "times": [vars(each) for each in used],
        "learnt": [{**vars(each), "heat": each.heat.model_dump() if each.heat else None} for each in bodies],
        "doubts": list(measured.doubts),
    }
