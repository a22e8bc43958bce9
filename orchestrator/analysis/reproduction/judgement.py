"""Judge one figure of ours against a published one, by one rule.

Ours has a 95 % interval, theirs a tolerance. Reproduced: the interval lies within the tolerance. Different: it lies
outside. Else it is not decided, and so it is with too few blocks. Proportions are judged, the best value of an axis,
counts of examples, and orders; never the size of a figure of another device.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, inf, isfinite, log
from typing import Literal, NamedTuple

import numpy as np

from orchestrator.analysis.best import Best
from orchestrator.analysis.comparison.backends import PaysFrom
from orchestrator.analysis.comparison.metrics import MIN_BLOCKS
from orchestrator.analysis.comparison.ratio import Estimate
from orchestrator.analysis.comparison.verdict import CONFIDENCE, POWER, bounds
from orchestrator.analysis.student_t import t_quantiles
from orchestrator.model.quantity import counted

Verdict = Literal["reproduced", "different", "not decided", "not comparable"]
CIRCULAR = {
    "modelled": "modelled from such a figure: a virtual phone has it from its profile",
    "played back": "a recording, which may be that of the publication",
}
"""Verdicts that count in no score: ours may be made from theirs."""
ALIKE = 1.05
"""A published ratio nearer to one shows no difference."""
CHANGED = 0.001
"""Share of examples up to which predictions count as the same."""
MANY = (*range(1, 11), 12, 15, 20, 30, 50, 100, 200, 500, 1000)


class Judged(NamedTuple):
    verdict: Verdict
    why: str


class Bounds(NamedTuple):
    """The values between which a device's limit lies, and the memory that its driver tells."""

    memory: int
    ran: float
    not_run: float


class Range(NamedTuple):
    """Logarithms of ratios that agree with what was published."""

    low: float
    high: float


def around(theirs: float, tolerance: float) -> Range:
    """Return the range up to `tolerance` times a ratio of theirs, at most half the way to none where theirs differs."""
    middle = log(theirs)
    width = min(log(tolerance), abs(middle) / 2 if abs(middle) > log(ALIKE) else inf)
    return Range(middle - width, middle + width)


def expected(order: str, times: float) -> Range:
    """Return the range of ratios that agrees with a finding."""
    return {"less": Range(-inf, log(times)), "more": Range(log(times), inf), "alike": around(times, 1.25)}[order]


def judge_ratio(found: Estimate | None, wanted: Range, text: str) -> Judged:
    """An estimate of the logarithm of ours; `text` tells both."""
    if found is None or min(found.blocks) < MIN_BLOCKS:
        return Judged("not decided", f"{text}; that needs {MIN_BLOCKS} blocks of each")
    low, high = (each.item() for each in bounds(found))
    text += f" [{exp(low):.3g}, {exp(high):.3g}]"
    if wanted.low < low and high < wanted.high:
        return Judged("reproduced", text)
    if high < wanted.low or wanted.high < low:
        return Judged("different", text)
    return Judged("not decided", f"{text}; {_more_blocks(found, wanted)}")


def _more_blocks(found: Estimate, wanted: Range) -> str:
    """Say how many more blocks would decide it in four of five cases, if the ratio is what it seems."""
    room = min(abs(found.centre.item() - edge) for edge in wanted if isfinite(edge))
    std, freedom = found.after(np.array(MANY), np.zeros(len(MANY), np.intp))
    spread = t_quantiles((1 + CONFIDENCE) / 2, freedom) + t_quantiles(POWER, freedom)
    enough = [more for more, decides in zip(MANY, spread * std < room, strict=True) if decides]
    return f"{enough[0]} more blocks of each may decide" if enough else "no number of blocks may decide"


def judge_by_memory(own: Bounds, others: Sequence[Bounds]) -> Judged:
    """Judge whether a device's limit is above those of devices with less memory, and below those with more."""
    agree = differ = 0
    for other in others:
        low, high = (own, other) if own.memory < other.memory else (other, own)
        agree += low.memory < high.memory and low.not_run <= high.ran
        differ += low.memory < high.memory and high.not_run <= low.ran
    apart = sum(one.memory != own.memory for one in others)
    apart_ones = counted(apart, "device")
    text = f"{own.memory / 1e9:.3g} GB, {own.ran:.10g}; {agree} of {apart_ones} with other memory are as expected"
    if not apart:
        return Judged("not comparable", "no other device of this experiment has more memory or less, and a known limit")
    return Judged("different" if differ else "reproduced" if agree == apart else "not decided", text)


def judge_best(published: float, best: Best) -> Judged:
    """The published optimum of an axis against ours."""
    values = {float(each.value): each for each in best.values}
    if published not in values:
        known = ", ".join(str(values[each].value) for each in sorted(values))
        return Judged("not comparable", f"{best.axis}={published:g} was not measured; ours has {known}")
    theirs = values[published]
    if best.reason or theirs.value in best.tied_with:
        return Judged("not decided", best.reason or f"ours does not tell {best.best} from {theirs.value}")
    if theirs.value != best.best:
        faster = theirs.median_ms / best.median_ms
        return Judged("different", f"{best.best} in ours, which is {faster:.3g} times as fast as {theirs.value}")
    if best.tied_with:
        return Judged("not decided", f"equal, but ours does not tell it from {best.tied_with[0]}")
    return Judged("reproduced", "equal")


def judge_all_same(same: int, of: int) -> Judged:
    """Judge whether predictions change, where theirs did not: by the interval of Clopper and Pearson."""
    from scipy.special import betaincinv

    changed, beyond = of - same, (1 - CONFIDENCE) / 2
    low = betaincinv(changed, same + 1, beyond) if changed else 0.0
    high = betaincinv(changed + 1, same, 1 - beyond) if same else 1.0
    text = f"{changed} of {of} changed in ours, {100 * low:.2g} to {100 * high:.2g} %"
    if high <= CHANGED:
        return Judged("reproduced", text)
    if low > CHANGED:
        return Judged("different", text)
    enough = ceil(log(beyond) / log(1 - CHANGED))
    return Judged("not decided", f"{text}; without a change {counted(enough, 'example decides', 'examples decide')}")


def judge_crossing(pays: Sequence[PaysFrom]) -> Judged:
    """Judge whether it is behind at the smallest size, ahead from some size on, as the first of them shows it."""
    if not pays:
        return Judged("not comparable", "it was not measured at two sizes on both")
    sizes, ratios, lead = pays[0].sizes, pays[0].ratios, pays[0].lead_at
    within = [ratio.interval for ratio in (ratios[0], ratios[-1])]
    behind = [interval is not None and interval.high < 1 for interval in within]
    if behind[1]:
        return Judged("different", f"behind up to {sizes[-1]}")
    if lead == 0:
        return Judged("different", f"ahead from {sizes[0]}, the smallest")
    if behind[0] and lead < len(sizes):
        return Judged("reproduced", f"ahead from {sizes[lead]}, not yet at {sizes[lead - 1]}")
    return Judged("not decided", "the intervals at the smallest and the largest size do not tell who is ahead")
