"""A tuned network against the untuned one, on a device whose times are known."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from kernels.options import Choice
from kernels.tuning import TimeIsOver
from orchestrator.model.errors import AgentFault
from workers.tuning.plan_comparison import FEWEST_PAIRS, PAIRS, PlanRun, RunPlan, change_of, settle

LAYERS = {"conv1": "a", "conv2": "b", "conv3": "b"}
CHOICES = {"a": Choice("direct", "1x1x4"), "b": Choice("im2col", "8x8")}


def network(
    gains: Mapping[str, float], *, overhead_ms: float = 0.0, noise: float = 0.0, wrong: str = ""
) -> tuple[RunPlan, list[set[str]]]:
    """Every layer takes 10 ms untuned; `gains`: ms less a layer where a convolution is tuned. And what was run."""
    runs: list[set[str]] = []

    def run(choices: Mapping[str, Choice], samples: int, passes: int) -> PlanRun:
        runs.append(set(choices))
        layers = {layer: 10.0 - (gains[key] if key in choices else 0.0) for layer, key in LAYERS.items()}
        whole = sum(layers.values()) + (overhead_ms if choices else 0.0) + noise * (len(runs) * 7 % 5)
        is_wrong = wrong in choices or (wrong == "untuned" and not choices)
        return PlanRun((whole,) * samples, layers if passes else {}, ("output 'y' differs",) if is_wrong else ())

    return run, runs


def test_what_is_faster_is_kept() -> None:
    run, runs = network({"a": 1.0, "b": 2.0})
    verdict = settle(CHOICES, LAYERS, run)
    assert verdict.kept == ("a", "b") and verdict.dropped == ()
    (found,) = verdict.comparisons
    assert (found.untuned_ms, found.tuned_ms, found.choices) == (30.0, 25.0, 2)
    assert found.change.high < 0
    order = ["T" if choices else "U" for choices in runs[2:]]  # one of each came before, to be verified
    assert "".join(order) == "UTTU" * (PAIRS // 2)


def test_only_what_gains_nothing_is_dropped() -> None:
    run, _ = network({"a": 1.0, "b": -2.0})
    verdict = settle(CHOICES, LAYERS, run)
    assert verdict.kept == ("a",) and verdict.dropped == ("b",)
    assert [found.choices for found in verdict.comparisons] == [2, 1]
    assert verdict.comparisons[-1].tuned_ms < verdict.comparisons[-1].untuned_ms


@pytest.mark.parametrize("gain", [0.0, -1.0])
def test_nothing_gains(gain: float) -> None:
    run, _ = network({"a": gain, "b": gain})
    assert settle(CHOICES, LAYERS, run).kept == ()


def test_layers_that_gain_in_a_network_that_does_not_are_all_dropped() -> None:
    run, _ = network({"a": 1.0, "b": 1.0}, overhead_ms=5.0)
    verdict = settle(CHOICES, LAYERS, run)
    assert verdict.kept == () and verdict.dropped == ("a", "b")


def test_a_gain_that_drowns_in_noise_is_kept_only_where_the_network_is_no_slower() -> None:
    run, _ = network({"a": 0.01, "b": 0.01}, noise=3.0)
    verdict = settle(CHOICES, LAYERS, run)
    assert verdict.comparisons[0].change.high > 0
    assert bool(verdict.kept) == (verdict.comparisons[0].change.value <= 0)


def test_a_plan_that_computes_wrongly_is_discarded() -> None:
    run, _ = network({"a": 5.0, "b": 5.0}, wrong="b")
    verdict = settle(CHOICES, LAYERS, run)
    assert verdict.kept == () and verdict.dropped == ("a", "b") and "differs" in verdict.wrong[0]
    run, _ = network({"a": 5.0, "b": 5.0}, wrong="untuned")
    with pytest.raises(AgentFault, match="even the untuned plan"):
        settle(CHOICES, LAYERS, run)


def test_nothing_to_compare() -> None:
    run, runs = network({})
    assert settle({}, LAYERS, run).comparisons == () and runs == []


def test_a_busy_moment_moves_the_change_little() -> None:
    quiet = [(10.0, 9.0 + 0.01 * index) for index in range(12)]
    busy = [(10.0, 30.0), (40.0, 9.0), *quiet[2:]]
    for pairs in (quiet, busy):
        change = change_of(pairs)
        assert change.low < change.value < change.high < -0.08 and change.value == pytest.approx(-0.0945, abs=0.002)


def test_the_interval_covers_what_it_says() -> None:
    covered = 0
    random = Random(3)
    for _ in range(2000):
        change = change_of([(1.0, 1.0 + random.gauss(0.1, 0.05)) for _ in range(PAIRS)])
        covered += change.low <= 0.1 <= change.high
    assert 0.94 < covered / 2000 < 0.98
    assert change_of([(1.0, 2.0), (1.0, 3.0)]).low == 1.0


def cut_off(run: RunPlan, after: int) -> RunPlan:
    """The time is over after so many runs."""
    left = iter(range(after))

    def cut(choices: Mapping[str, Choice], samples: int, passes: int) -> PlanRun:
        if next(left, None) is None:
            raise TimeIsOver
        return run(choices, samples, passes)

    return cut


@pytest.mark.parametrize("runs", [0, 1, 2, 2 + 2 * FEWEST_PAIRS - 1])
def test_without_time_for_a_comparison_nothing_is_decided(runs: int) -> None:
    verdict = settle(CHOICES, LAYERS, cut_off(network({"a": 1.0, "b": 2.0})[0], runs))
    assert (verdict.kept, verdict.dropped, verdict.undecided) == ((), (), ("a", "b"))


def test_fewer_pairs_may_settle_it() -> None:
    verdict = settle(CHOICES, LAYERS, cut_off(network({"a": 1.0, "b": 2.0})[0], 2 + 2 * FEWEST_PAIRS + 1))
    assert (verdict.kept, verdict.undecided) == (("a", "b"), ())


def test_what_was_dropped_before_the_time_was_over_stays_dropped() -> None:
    verdict = settle(CHOICES, LAYERS, cut_off(network({"a": 1.0, "b": -2.0})[0], 2 + 2 * PAIRS + 3))
    assert (verdict.kept, verdict.dropped, verdict.undecided) == ((), ("b",), ("a",))
