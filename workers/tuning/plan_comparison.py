"""Compare a tuned plan with the untuned one as whole networks, and drop the choices that gain nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from kernels.options import Choice
from kernels.tuning import TimeIsOver
from orchestrator.model.errors import AgentFault

PAIRS = 12
"""Runs of both plans: U T, T U, U T ... so that a drift cancels."""
FEWEST_PAIRS = 6
"""The pairs below which the interval does not reach its confidence, and nothing is decided."""
PROFILED = 3
"""The first pairs, whose layers are profiled, too."""
ROUNDS = 3
"""Comparisons at most; what is not settled by then goes back to the compiler's own choices."""
RUN_S = 0.3
SAMPLES = (3, 50)
"""Fewest and most inferences of a run."""
PASSES = 5
"""Profiled passes of such a run."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class PlanRun:
    """One run of a whole network."""

    samples_ms: tuple[float, ...]
    layers_ms: Mapping[str, float] = field(default_factory=dict)
    """Layer -> median device time."""
    wrong: tuple[str, ...] = ()
    """The differences of its outputs from the reference; empty where they are right."""


RunPlan = Callable[[Mapping[str, Choice], int, int], PlanRun]
"""choices, samples, profiled passes -> one run in a process of its own. Raises TimeIsOver."""


@dataclass(frozen=True)
class Change:
    """The change of wall time by tuning, a share: -0.2 is a fifth less. The median of pairs, and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Both plans in turn."""

    untuned_ms: float
    tuned_ms: float
    change: Change
    choices: int
    """Tuned layers of this plan, those of one size as one."""
    losers: frozenset[str] = frozenset()
    """Convolutions whose layers take no less time inside the network."""


@dataclass(frozen=True)
class Verdict:
    """The choices that a network keeps."""

    kept: tuple[str, ...]
    """Keys of layers."""
    dropped: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    wrong: tuple[str, ...] = ()
    """The reasons why a tuned plan was discarded at once."""
    undecided: tuple[str, ...] = ()
    """Keys of layers whose comparison the end of the time cut off."""


def settle(
    choices: Mapping[str, Choice],
    layers: Mapping[str, str],
    run: RunPlan,
    report: Callable[[int, int], None] = lambda *_: None,
) -> Verdict:
    """Compare, drop what gained nothing, compare again, until the tuned plan is not slower than the untuned one.

    `layers`: step -> key of the layer whose work it is. `report`: pairs done, of how many. Where the time is over
    first, what is left is undecided. Raises AgentFault where the untuned plan computes wrongly: then nothing can be
    said.
    """
    left, comparisons = dict(choices), list[Comparison]()
    try:
        return _settled(choices, left, comparisons, layers, run, report)
    except TimeIsOver:
        dropped = tuple(key for key in choices if key not in left)
        return Verdict((), dropped, tuple(comparisons), undecided=tuple(left))


def _settled(
    choices: Mapping[str, Choice],
    left: dict[str, Choice],
    comparisons: list[Comparison],
    layers: Mapping[str, str],
    run: RunPlan,
    report: Callable[[int, int], None],
) -> Verdict:
    """Takes out of `left` what gains nothing."""
    if not choices:
        return Verdict((), (), ())
    untuned = run({}, SAMPLES[0], 1)
    if untuned.wrong:
        raise AgentFault(f"even the untuned plan computes wrongly: {untuned.wrong[0]}")
    for _ in range(ROUNDS):
        if not left:
            break
        if wrong := run(left, SAMPLES[0], 1).wrong:
            return Verdict((), tuple(choices), tuple(comparisons), wrong)
        found = _compare(left, layers, run, samples_of(untuned), report)
        comparisons.append(found)
        if found.change.high < 0 or (not found.losers and found.change.value <= 0):
            return _verdict(choices, left, comparisons)
        for key in found.losers or set(left):
            left.pop(key, None)
    return _verdict(choices, {}, comparisons)


def change_of(pairs: Sequence[tuple[float, float]]) -> Change:
    """Median change from the first of each pair to the second. Its interval takes the ranks of the sign test: a machine
    that is busy for a few of the pairs moves it little. Below six pairs it is their range, which covers less."""
    from scipy.special import bdtr

    shares = sorted(after / before - 1.0 for before, after in pairs)
    ranks = range(len(shares) // 2)
    aside = max((rank for rank in ranks if 2 * bdtr(rank, len(shares), 0.5) <= 1 - CONFIDENCE), default=0)
    return Change(median(shares), shares[aside], shares[-1 - aside])


def without_gain(
    choices: Iterable[str], layers: Mapping[str, str], untuned: Sequence[PlanRun], tuned: Sequence[PlanRun]
) -> frozenset[str]:
    """Convolutions whose layers take no less time inside the network, each at its best run."""
    lost = set()
    for key in choices:
        own = [layer for layer, of in layers.items() if of == key]
        before, after = (
            sum(min(run.layers_ms.get(layer, 0.0) for run in runs) for layer in own) for runs in (untuned, tuned)
        )
        if after >= before:
            lost.add(key)
    return frozenset(lost)


def samples_of(pilot: PlanRun) -> int:
    """Inferences of a run, after one of few."""
    fewest, most = SAMPLES
    return round(min(most, max(fewest, RUN_S * 1e3 / median(pilot.samples_ms))))


def _compare(
    choices: Mapping[str, Choice],
    layers: Mapping[str, str],
    run: RunPlan,
    samples: int,
    report: Callable[[int, int], None],
) -> Comparison:
    runs: dict[bool, list[PlanRun]] = {False: [], True: []}
    for index in range(PAIRS):
        report(index, PAIRS)
        try:
            for is_tuned in (False, True) if index % 2 == 0 else (True, False):
                runs[is_tuned].append(run(choices if is_tuned else {}, samples, PASSES if index < PROFILED else 0))
        except TimeIsOver:
            if index < FEWEST_PAIRS:
                raise
            break
    report(PAIRS, PAIRS)
    whole = min(map(len, runs.values()))
    before, after = ([median(each.samples_ms) for each in runs[is_tuned][:whole]] for is_tuned in (False, True))
    losers = without_gain(choices, layers, runs[False][:PROFILED], runs[True][:PROFILED])
    change = change_of(list(zip(before, after, strict=True)))
    return Comparison(median(before), median(after), change, len(choices), losers)


def _verdict(choices: Mapping[str, Choice], kept: Mapping[str, Choice], comparisons: list[Comparison]) -> Verdict:
    return Verdict(tuple(kept), tuple(key for key in choices if key not in kept), tuple(comparisons))
