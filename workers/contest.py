"""A tuned plan against the untuned one as whole networks; the choices that gain nothing there are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from kernels.options import Choice
from orchestrator.errors import AgentFault
from orchestrator.model.power import Estimate

from .enrolment.sampler_cost import change_of

PAIRS = 8
"""Runs of both plans: U T, T U, U T ... so that a drift cancels."""
ROUNDS = 3
"""Comparisons at most; what is not settled by then goes back to the compiler's own choices."""
RUN_S = 0.3
SAMPLES = (3, 50)
"""Fewest and most inferences of a run."""
PASSES = 5
"""Profiled passes, by which a layer's gain is told."""


@dataclass(frozen=True)
class PlanRun:
    """One run of a whole network."""

    samples_ms: tuple[float, ...]
    layers_ms: Mapping[str, float] = field(default_factory=dict)
    """Layer -> median device time."""
    wrong: tuple[str, ...] = ()
    """How its outputs differ from the reference; empty where they are right."""


RunPlan = Callable[[Mapping[str, Choice], int, int], PlanRun]
"""choices, samples, profiled passes -> one run in a process of its own"""


@dataclass(frozen=True)
class Comparison:
    """Both plans in turn."""

    untuned_ms: float
    tuned_ms: float
    change: Estimate
    """Of the wall time by tuning, as a share: -0.2 is a fifth less."""
    choices: int
    """Tuned convolutions of this plan."""


@dataclass(frozen=True)
class Verdict:
    """What a network keeps."""

    kept: tuple[str, ...]
    """Keys of convolutions."""
    dropped: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    wrong: tuple[str, ...] = ()
    """Why a tuned plan was discarded at once."""


def settle(
    choices: Mapping[str, Choice],
    layers: Mapping[str, str],
    run: RunPlan,
    report: Callable[[int, int], None] = lambda *_: None,
) -> Verdict:
    """Compare, drop what gained nothing, compare again, until the tuned plan is not slower than the untuned one.

    `layers`: layer -> key of its convolution. `report`: pairs done, of how many. Raises AgentFault where the untuned
    plan computes wrongly: then nothing can be said.
    """
    if not choices:
        return Verdict((), (), ())
    left, comparisons = dict(choices), list[Comparison]()
    untuned = _pilot(run, {})
    if untuned.wrong:
        raise AgentFault(f"even the untuned plan computes wrongly: {untuned.wrong[0]}")
    for _ in range(ROUNDS):
        if not left:
            break
        tuned = _pilot(run, left)
        if tuned.wrong:
            return Verdict((), tuple(choices), tuple(comparisons), tuned.wrong)
        comparisons.append(_compare(left, run, _samples(untuned), report))
        if comparisons[-1].change.high < 0:
            return _verdict(choices, left, comparisons)
        losers = without_gain(left, layers, untuned, tuned)
        if not losers and comparisons[-1].change.value <= 0:
            return _verdict(choices, left, comparisons)
        left = {key: choice for key, choice in left.items() if losers and key not in losers}
    return _verdict(choices, {}, comparisons)


def without_gain(choices: Iterable[str], layers: Mapping[str, str], untuned: PlanRun, tuned: PlanRun) -> set[str]:
    """Convolutions whose layers take no less time inside the network."""
    lost = set()
    for key in choices:
        own = [layer for layer, of in layers.items() if of == key]
        before, after = (sum(run.layers_ms.get(layer, 0.0) for layer in own) for run in (untuned, tuned))
        if after >= before:
            lost.add(key)
    return lost


def _pilot(run: RunPlan, choices: Mapping[str, Choice]) -> PlanRun:
    """Fills the caches, verifies, profiles."""
    return run(choices, SAMPLES[0], PASSES)


def _samples(pilot: PlanRun) -> int:
    fewest, most = SAMPLES
    return round(min(most, max(fewest, RUN_S * 1e3 / median(pilot.samples_ms))))


def _compare(
    choices: Mapping[str, Choice], run: RunPlan, samples: int, report: Callable[[int, int], None]
) -> Comparison:
    pairs: list[tuple[float, float]] = []
    for index in range(PAIRS):
        report(index, PAIRS)
        medians = {}
        for is_tuned in (False, True) if index % 2 == 0 else (True, False):
            medians[is_tuned] = median(run(choices if is_tuned else {}, samples, 0).samples_ms)
        pairs.append((medians[False], medians[True]))
    report(PAIRS, PAIRS)
    before, after = (median(each) for each in zip(*pairs, strict=True))
    return Comparison(before, after, change_of(pairs), len(choices))


def _verdict(choices: Mapping[str, Choice], kept: Mapping[str, Choice], comparisons: list[Comparison]) -> Verdict:
    return Verdict(tuple(kept), tuple(key for key in choices if key not in kept), tuple(comparisons))
