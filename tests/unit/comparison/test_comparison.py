"""Ratios beside SciPy's tests, verdicts of a whole table, and what the sides do not have in common."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for

from orchestrator.analysis.comparison import SideRow, compare, sides_of
from orchestrator.analysis.comparison.matching import only
from orchestrator.analysis.comparison.metrics import MIN_BLOCKS
from orchestrator.analysis.comparison.ratio import Block, estimate
from orchestrator.analysis.comparison.verdict import holm, needed, p_values
from orchestrator.model.device import Source
from orchestrator.model.errors import NoData, UnknownName

from .made import measured, one, row

pytestmark = pytest.mark.unit

NONE = {"latency": 0.0}


def drawn(seed: object, count: int, middle: float = 10.0, spread: float = 0.01) -> list[float]:
    generator = random.Random(str(seed))
    return [middle * math.exp(generator.gauss(0, spread)) for _ in range(count)]


def logs(values: Sequence[float]) -> list[float]:
    return [math.log(value) for value in values]


def trimmed_as_t(rows: np.ndarray) -> np.ndarray:
    """Rows of as many values as Yuen keeps, with his trimmed mean and standard error as their mean and their own."""
    count, cut = rows.shape[1], rows.shape[1] // 10
    ordered = np.sort(rows, axis=1)
    kept = count - 2 * cut
    drawn_in = np.clip(ordered, ordered[:, [cut]], ordered[:, [count - cut - 1]])
    error = np.sqrt(drawn_in.var(axis=1, ddof=1) * (count - 1) / (kept * (kept - 1)))
    shape = np.linspace(-1, 1, kept)
    shape /= shape.std(ddof=1) / math.sqrt(kept)
    return np.asarray(ordered[:, cut : count - cut].mean(axis=1)[:, None] + error[:, None] * shape)


def test_rounds_of_one_night_are_paired() -> None:
    """The drift of the night is far larger than the difference, and in none of the differences."""
    drift = [1 + 0.1 * turn for turn in range(8)]
    a = [value * slow for value, slow in zip(drawn(1, 8), drift, strict=True)]
    b = [1.05 * value * slow for value, slow in zip(drawn(2, 8), drift, strict=True)]
    found = one(measured(a), measured(b, late=20))
    told = scipy.stats.ttest_rel(logs(b), logs(a))
    low, high = told.confidence_interval(0.95)
    assert found.method == "paired" and found.p == pytest.approx(told.pvalue, rel=1e-6)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)
    assert (found.verdict, found.worse, found.blocks) == ("different", True, (8, 8))
    apart = one(measured(a), measured(b, "night-2"), between=NONE)
    assert apart.method == "blocks" and apart.verdict == "unknown"


def test_a_ratio_is_the_quotient_of_the_medians_and_lies_in_its_interval(seed: int) -> None:
    """Whatever the design, the number of blocks and what is grossly slow: verdicts follow from the same interval."""
    generator = np.random.default_rng(seed)
    for _ in range(200):
        counts = generator.integers(2, 25, 2)
        sides = [
            np.exp(generator.normal(2, 0.05, count)) * (1 + 0.5 * generator.random(count) ** 9) for count in counts
        ]
        late, nights = float(generator.choice([20.0, 2000.0])), int(generator.choice([1, 1, 4]))
        a = [each for k in range(nights) for each in measured(sides[0].tolist(), f"night-{k}")]
        found = one(a, measured(sides[1].tolist(), str(generator.choice(["night-0", "night-9"])), late))
        middle, other = np.median(sides[0]), np.median(sides[1])
        told = ((found.a, middle), (found.b, other), (found.ratio, other / middle))
        assert all(value is None or value == pytest.approx(expected) for value, expected in told)
        assert (found.interval is None) == (found.unresolved is not None)
        assert (found.ratio is None) == (found.a is None or found.b is None or found.interval is None)
        if found.interval is None:
            assert found.verdict == "unknown"
            continue
        assert 0 < found.interval.low <= other / middle * (1 + 1e-12)
        assert other / middle <= found.interval.high * (1 + 1e-12)
        if found.verdict == "different":
            assert (found.interval.low - 1) * (found.interval.high - 1) > 0
        if found.verdict == "same":
            assert found.interval.high <= 1.02 * (1 + 1e-12) and found.interval.low >= (1 - 1e-12) / 1.02


@pytest.mark.parametrize("before", [1, 6])
def test_what_the_canaries_did_too_is_no_difference_of_a_single_night(before: int, seed: int) -> None:
    """A phone that throttles all night slows its canaries as much; both sides in one night need none."""
    generator = np.random.default_rng(seed)
    slow = float(generator.uniform(1.15, 1.4))

    def nights(factor: float, first: int, count: int, canary_ms: float) -> list[SideRow]:
        return [
            replace(each, canaries_ms={"canary": canary_ms})
            for k in range(first, first + count)
            for each in measured((factor * np.exp(generator.normal(2, 0.002, 8))).tolist(), f"night-{k}")
        ]

    a = nights(1.0, 0, before, 5.0)
    told = one(a, nights(slow, 9, 1, 5.0 * slow))
    assert told.verdict == "unknown" and "canaries" in told.reason and told.worse is None
    for canary_ms in (5.0, 5.0 / slow):
        assert one(a, nights(slow, 9, 1, canary_ms)).verdict == "different"
    paired = [replace(each, started_at=each.started_at + 20) for each in nights(slow, 0, 1, 5.0 * slow)]
    assert one(a[:8], paired).verdict == "different"


def test_trimmed_blocks_of_two_nights_are_those_of_yuen(seed: int) -> None:
    generator = np.random.default_rng(seed)
    drawn = [np.sort(np.exp(generator.normal(2 + 0.02 * side, 0.01, 20))) for side in (0, 1)]
    a, b = (np.stack([each[:10], each[:9:-1]], 1).ravel() for each in drawn)  # neighbours that are not alike
    found = one(measured(a.tolist()), measured(b.tolist(), "night-2"), between=NONE)
    told = scipy.stats.ttest_ind(np.log(b), np.log(a), equal_var=False, trim=0.1)
    assert found.method == "blocks" and found.p == pytest.approx(told.pvalue, rel=1e-6)


def test_sides_one_after_the_other_are_not_paired() -> None:
    a, b = drawn(1, 8), drawn(2, 8)
    assert one(measured(a), measured(b, late=60.0 * 8)).method == "blocks"
    assert one(measured(a), measured(b, late=20.0)).method == "paired"


def test_blocks_of_two_nights_are_tested_by_welch() -> None:
    a, b = drawn(1, 5), drawn(2, 5, 11.0, 0.03)
    found = one(measured(a), measured(b, "night-2"), between=NONE)
    told = scipy.stats.ttest_ind(logs(b), logs(a), equal_var=False)
    low, high = told.confidence_interval(0.95)
    assert found.p == pytest.approx(told.pvalue, rel=1e-6) and found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)
    wider = one(measured(a), measured(b, "night-2"), between={"latency": 0.05})
    assert wider.interval is not None and wider.interval.low < found.interval.low and wider.verdict == "unknown"


def test_of_many_nights_the_night_is_the_unit() -> None:
    nights = [[value * day for value in drawn(k, 5)] for k, day in enumerate([1.0, 1.02, 0.97, 1.01, 0.99])]
    a = [each for k in range(4) for each in measured(nights[k], f"night-{k}")]
    found = one(a, measured(nights[4], "night-4"))
    medians = [math.log(np.median(values)) for values in nights]
    mean, spread = np.mean(medians[:4]), np.std(medians[:4], ddof=1)
    t = (medians[4] - mean) / (spread * math.sqrt(1 / 4 + 1))
    assert (found.method, found.nights, found.blocks) == ("nights", (4, 1), (20, 5))
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), 3), rel=1e-6)
    assert found.needs_nights and found.needs_blocks == 5 * found.needs_nights


def test_neighbours_that_are_alike_count_for_less() -> None:
    generator, noise = random.Random(4), [0.0]
    for _ in range(40):
        noise.append(0.8 * noise[-1] + generator.gauss(0, 0.01))
    alike = [10 * math.exp(each) for each in noise[1:]]
    mixed = sorted(alike, key=lambda _: generator.random())
    other = measured(drawn(1, 40), "night-2")
    found, free = one(measured(alike), other, between=NONE), one(measured(mixed), other, between=NONE)
    assert found.interval is not None and free.interval is not None
    assert found.interval.half_width > 1.5 * free.interval.half_width


def test_the_same_is_what_two_one_sided_tests_say() -> None:
    """Each test is at 2.5 %, for margins on both sides of where the verdict turns."""
    a, b = drawn(1, 9), drawn(2, 9, 10.05)
    point = abs(math.log(np.median(b) / np.median(a)))
    differences = np.array(logs(b)) - np.array(logs(a))
    seen = set()
    for margin in np.linspace(0.001, 0.03, 30):
        limit = math.log(1 + margin)
        below = scipy.stats.ttest_1samp(differences, limit, alternative="less").pvalue
        above = scipy.stats.ttest_1samp(differences, -limit, alternative="greater").pvalue
        same = max(below, above) <= 0.025 and point <= limit
        found = one(measured(a), measured(b, late=20), margins={"latency": float(margin)})
        assert (found.verdict == "same") == same
        seen.add(same)
    assert seen == {True, False}


def test_holm_is_that_of_its_paper() -> None:
    """Sorted: 4 x 0.01, 3 x 0.013, 2 x 0.03, 1 x 0.04, none smaller than the one before, none above one."""
    assert holm([0.03, 0.01, 0.04, 0.013]) == pytest.approx([0.06, 0.04, 0.06, 0.04])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


def test_a_verdict_depends_on_how_many_rows_were_looked_at() -> None:
    a, b = drawn(3, 8), drawn(4, 8, 10.25)
    alone = one(measured(a), measured(b, late=20))
    rows = [
        [each for n in range(300) for each in measured(drawn((side, n), 8), late=20 * side, network=f"other-{n}")]
        for side in (0, 1)
    ]
    table = compare([*measured(a), *rows[0]], [*measured(b, late=20), *rows[1]])
    (among,) = [each for each in table if each.network == "lenet"]
    assert (alone.verdict, among.verdict) == ("different", "unknown")
    assert among.p == alone.p and among.interval == alone.interval
    assert [each.network for each in table if each.verdict == "different"] == []


def test_the_direction_says_which_side_is_worse() -> None:
    a, b = drawn(1, 8), drawn(2, 8, 12.0)
    assert one(measured(a), measured(b, late=20)).worse is True
    assert one(measured(b), measured(a, late=20)).worse is False
    rate = [
        [replace(each, values={"throughput": each.values["latency"]}) for each in measured(side)] for side in (a, b)
    ]
    assert one(rate[0], rate[1]).worse is False


def test_few_blocks_have_no_verdict_and_say_how_many_are_missing() -> None:
    for count in range(1, MIN_BLOCKS):
        found = one(measured(drawn(1, count)), measured(drawn(2, count, 20.0), late=20))
        assert (found.verdict, found.needs_blocks) == ("unknown", MIN_BLOCKS - count)
        assert f"{MIN_BLOCKS} blocks" in found.reason and found.ratio == pytest.approx(2.0, rel=0.1)
    assert one(measured(drawn(1, MIN_BLOCKS)), measured(drawn(2, MIN_BLOCKS, 20.0), late=20)).verdict == "different"


def test_figures_that_never_vary_are_told_apart_exactly() -> None:
    a, b = measured([1000.0] * 5), measured([1000.0] * 5, "night-2")
    memory = [[replace(each, values={"memory/device": 1000.0}) for each in side] for side in (a, b)]
    more = [replace(each, values={"memory/device": 1020.0}) for each in b]
    assert one(memory[0], memory[1]).verdict == "same"
    assert (one(memory[0], more).verdict, one(memory[0], more).worse) == ("different", True)
    assert one(memory[0], more, margins={"memory": 0.05}).verdict == "same"


def test_whole_milliseconds_are_not_sharper_than_their_rounding() -> None:
    more = {"whole_ms": True, "canaries_ms": {"canary": 5.0}}
    sides = [measured([value] * 8, f"night-{value}", **more) for value in (5.0, 6.0, 500.0, 600.0)]
    assert one(sides[0], sides[1]).verdict == "unknown" and one(sides[2], sides[3]).verdict == "different"


def test_what_is_said_to_be_needed_settles_it_four_times_in_five() -> None:
    """The same spread again, with so many rounds more."""
    generator = np.random.default_rng(7)
    for ratio, margin in ((0.012, 0.0001), (0.0, 0.01)):
        half = generator.normal(0, 0.02, 3)
        seen = np.concatenate([half, -half])  # mean and median are one
        seen = ratio + seen / seen.std(ddof=1) * 0.02
        a = [Block("s", turn, 60.0 * turn, 1.0) for turn in range(6)]
        b = [Block("s", turn, 60.0 * turn + 20, math.exp(each)) for turn, each in enumerate(seen)]
        found = estimate(a, b, 0.0)
        assert found is not None
        (more,) = needed(found, np.array([0]), margin, 0.01, 1)
        assert more is not None and more > 5
        trials = generator.normal(ratio, 0.02, (2000, 6 + more))
        tested = scipy.stats.ttest_1samp(trimmed_as_t(trials), 0.0, axis=1)
        within = tested.confidence_interval(0.95)
        same = np.maximum(-within.low, within.high) <= math.log(1 + margin)
        assert 0.55 <= ((tested.pvalue <= 0.01) | same).mean() <= 0.9


def test_where_nights_differ_more_than_the_margin_no_number_of_blocks_settles_it() -> None:
    found = one(measured(drawn(1, 8)), measured(drawn(2, 8), "night-2"), between={"latency": 0.05})
    assert (found.verdict, found.needs_blocks) == ("unknown", None) and "more nights" in found.reason


def test_what_is_on_one_side_only_is_a_row() -> None:
    a = [*measured(drawn(1, 5)), *measured(drawn(1, 5), backend="cpu"), *measured(drawn(1, 5), backend="vulkan")]
    failed = [row(None, backend="vulkan", problem="killed: out_of_memory")]
    found = compare(a, [*measured(drawn(2, 5), late=20), *failed, *measured(drawn(1, 5), network="new")])
    told = {(each.network, each.backend): (each.verdict, each.missing_on) for each in found}
    assert told["lenet", "cpu"] == told["lenet", "vulkan"] == ("missing", "B")
    assert told["new", "opencl"] == ("missing", "A") and told["lenet", "opencl"][0] == "same" and len(found) == 4
    (reason,) = [each.reason for each in found if each.backend == "vulkan"]
    assert "killed: out_of_memory" in reason


def test_what_no_block_measured_is_told_with_its_mode() -> None:
    a, b = ([row(None, time="latency/cold start", problem="killed: out_of_memory")] for _ in range(2))
    (found,) = compare(a, b)
    assert (found.verdict, found.metric, found.basis) == ("missing", "latency", "cold start")


def test_metrics_that_do_not_compare_stand_apart() -> None:
    a = [replace(each, values={"energy/net gauge": 1.0}) for each in measured([1.0] * 5)]
    b = [replace(each, values={"energy/gross gauge": 1.0}) for each in measured([1.0] * 5)]
    assert {(each.basis, each.missing_on) for each in compare(a, b)} == {("net gauge", "B"), ("gross gauge", "A")}
    below = [replace(each, values={"energy/net gauge": -1.0}) for each in b]
    (found,) = compare(a, below)
    assert (found.verdict, found.ratio) == ("unknown", None) and "not above zero" in found.reason


def test_phones_of_a_model_are_compared_where_that_is_asked_for() -> None:
    sides = [
        [
            each
            for n in range(4)
            for each in measured(drawn((side, n), 5), f"n{side}", device=f"{side}{n}", model="Pixel")
        ]
        for side in (0, 1)
    ]
    assert {each.verdict for each in compare(*sides)} == {"missing"}
    (found,) = compare(*sides, match="model")
    assert (found.device, found.method, found.nights) == ("Pixel", "nights", (4, 4))
    relative = [[replace(each, relative_energy=True, values={"energy/net": 1.0}) for each in side] for side in sides]
    (found,) = compare(*relative, match="model")
    assert found.verdict == "unknown" and "gain" in found.reason


def test_provenance_that_differs_is_named() -> None:
    a = measured(drawn(1, 5), provenance={"OS build": "8.0", "agent": "1", "plan": "x"})
    b = measured(drawn(2, 5), late=20, provenance={"OS build": "8.1", "agent": "1", "farm": "2"})
    assert one(a, b).differs == {"OS build": ("8.0", "8.1")}


def test_accuracy_is_compared_example_by_example() -> None:
    a = [row(None, values={}, first_example=0, right="1" * 90 + "0" * 10)]
    b = [row(None, values={}, first_example=0, right="1" * 60 + "0" * 40)]
    found = one(a, b)
    assert (found.metric, found.a, found.b, found.method) == ("accuracy", 0.9, 0.6, "examples")
    assert found.p == pytest.approx(scipy.stats.binomtest(0, 30).pvalue) and found.worse is True
    assert found.interval is not None and found.interval.low < 60 / 90 < found.interval.high
    assert one(a, a).verdict == "unknown"
    many = [row(None, values={}, first_example=1000 * n, right="1" * 900 + "0" * 100) for n in range(5)]
    assert one(many, many).verdict == "same"


def backends(count: int = 6) -> list[SideRow]:
    return [
        each
        for place, (backend, slow) in enumerate((("opencl", 1.0), ("cpu", 3.0)))
        for each in measured(
            drawn(backend, count, 10.0 * slow),
            late=20.0 * place,
            backend=backend,
            options={"tuned": True, "threads": place},
        )
    ]


def test_two_values_of_an_axis_are_two_sides() -> None:
    rows = [replace(each, options={}) for each in backends()]
    found = one(*sides_of(rows, "backend", "opencl", "cpu"))
    assert (found.backend, found.verdict, found.method) == ("opencl|cpu", "different", "paired")
    found = compare(*sides_of(backends(), "threads", "0", "1"))
    assert {(each.backend, each.options["threads"], each.missing_on) for each in found} == {
        ("opencl", "0|1", "B"),
        ("cpu", "0|1", "A"),
    }


def test_our_own_engine_is_a_side_by_its_name() -> None:
    """A cell that names no engine is of ours; of what was imported nobody knows it."""
    rows = [
        replace(each, backend="cpu", options={} if each.options["threads"] else {"engine": "mnn"})
        for each in backends()
    ]
    found = one(*sides_of(rows, "engine", "pocketfarm", "mnn"))
    assert (found.options["engine"], found.verdict) == ("pocketfarm|mnn", "different")
    assert len(only(rows, {"engine": "pocketfarm"})) == 6
    with pytest.raises(UnknownName, match="engine=pocketfarm"):
        sides_of([replace(each, source=Source.IMPORT) for each in rows], "engine", "pocketfarm", "mnn")


def test_an_axis_or_a_value_that_is_not_there_is_told() -> None:
    with pytest.raises(UnknownName, match="speed") as caught:
        sides_of(backends(), "speed", "1", "2")
    assert "tuned" in str(caught.value)
    with pytest.raises(UnknownName, match="backend=vulkan") as caught:
        sides_of(backends(), "backend", "cpu", "vulkan")
    assert "opencl, cpu" in str(caught.value)
    with pytest.raises(NoData, match="nothing is left") as nothing:
        only(backends(), {"threads": "7"})
    assert "0, 1" in str(nothing.value)
    assert len(only(backends(), {"tuned": "true", "backend": "cpu"})) == 6


def test_the_p_of_no_spread_is_one_or_zero() -> None:
    """Whatever the digits of their logarithms, and however many there are on each side."""
    same = [Block("s", turn, turn, 1000.0) for turn in range(5)]
    often = [Block("t", turn, turn, 1000.0) for turn in range(41)]
    other = [Block("t", turn, turn, 1000.1) for turn in range(5)]
    for b, p in ((same, 1.0), (often, 1.0), (other, 0.0)):
        found = estimate(same, b, 0.0)
        assert found is not None and p_values(found).tolist() == [p]


def test_gauges_of_unknown_gain_do_not_compare_two_phones_as_sides() -> None:
    """`farm compare --sides device=A,B` gives both the same name."""
    rows = [
        replace(each, serial=serial, relative_energy=True, values={"energy/net": each.values["latency"]})
        for serial in ("A", "B")
        for each in measured(drawn(1, 7), f"n{serial}", device=serial)
    ]
    (found,) = compare(*sides_of(rows, "device", "A", "B"))
    assert found.verdict == "unknown" and "gain" in found.reason
    own = [row for row in rows if row.serial == "A"]
    (found,) = compare(own, own)
    assert found.verdict != "unknown", "on one phone they do"
