"""Rounds of a benchmark with contenders that count, lie and crash."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.engine.case import Arrays, Case, make_case, relative_error
from benchmarks.engine.contender import ContenderError, Opened, Turn
from benchmarks.engine.results import NetworkResult, Row
from benchmarks.engine.rounds import Effort, measure
from benchmarks.engine.statistics import steady, turns


class Fake:
    """Answers with what is wanted, unless told otherwise."""

    def __init__(self, name: str, log: list[str], *, fails_in: str = "", lies: bool = False) -> None:
        self.name, self._log, self._fails_in, self._lies = name, log, fails_in, lies
        self.closed = False

    def open(self, case: Case, caches: Path) -> Opened:
        self._note("open")
        self._case, self._fresh = case, not any(caches.iterdir())
        (caches / "compiled").write_text("")
        steps = {"import": 9.0, "load": 3.0 if self._fresh else 1.0, "first inference": 1.0}
        return Opened(self._answer(0), "device", "1", steps, copies_inside=False)

    def infer(self, index: int) -> Arrays:
        return self._answer(0 if self._lies else index)

    def turn(self, warmup_s: float, seconds: float, least: int) -> Turn:
        self._note("turn")
        return Turn([2.0] * least, 0.5)

    def close(self) -> None:
        self.closed = True

    def _note(self, step: str) -> None:
        self._log.append(f"{self.name} {step}")
        if step == self._fails_in:
            raise ContenderError("it crashed")

    def _answer(self, index: int) -> Arrays:
        return {name: array.astype(np.float32) for name, array in self._case.wanted[index].items()}


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case("lenet", tmp_path_factory.mktemp("case"))


def _measure(case: Case, contenders: list[Fake], folder: Path, *, cold: bool = True) -> NetworkResult:
    return measure(case, contenders, Effort(rounds=3, seconds=0, samples=4, cold=cold), folder, lambda *_: None)


def test_contenders_take_turns_in_alternating_order(case: Case, tmp_path: Path) -> None:
    log: list[str] = []
    _measure(case, [Fake("a", log), Fake("b", log)], tmp_path)
    assert [line for line in log if line.endswith("turn")] == [f"{name} turn" for name in "abbaab"]


def test_cold_and_warm_are_apart_and_imports_do_not_count(case: Case, tmp_path: Path) -> None:
    (row,) = _measure(case, [Fake("a", [])], tmp_path).rows
    assert row.cold and row.warm
    assert (row.cold.total_ms, row.warm.total_ms) == (4.0, 2.0)
    (row,) = _measure(case, [Fake("a", [])], tmp_path, cold=False).rows
    assert row.cold is None and row.steady and row.steady.median_ms == 2.0


def test_who_answers_every_input_alike_gets_no_time(case: Case, tmp_path: Path) -> None:
    liar, honest = Fake("liar", [], lies=True), Fake("honest", [])
    wrong, right = _measure(case, [liar, honest], tmp_path).rows
    assert (wrong.status, wrong.steady, wrong.rounds_ms) == ("wrong", None, [])
    assert right.status == "ok" and right.error is not None and right.error < 1e-6
    assert liar.closed


@pytest.mark.parametrize("step", ["open", "turn"])
def test_a_crash_is_a_row_and_the_others_go_on(case: Case, tmp_path: Path, step: str) -> None:
    crashed, other = _measure(case, [Fake("a", [], fails_in=step), Fake("b", [])], tmp_path).rows
    assert (crashed.status, crashed.why, crashed.steady) == ("failed", "it crashed", None)
    assert other.steady and other.steady.samples == 12


def test_inputs_are_fresh_and_their_seeds_are_kept(case: Case, tmp_path: Path) -> None:
    again = make_case("lenet", tmp_path)
    assert again.input_seeds != case.input_seeds
    assert not np.array_equal(case.inputs[0]["data"], case.inputs[1]["data"])


def test_errors_are_relative_to_the_norm() -> None:
    wanted: Arrays = {"y": np.array([3.0, 4.0])}
    assert relative_error({"y": np.array([3.0, 4.5])}, wanted) == pytest.approx(0.1)
    for found in ({}, {"y": np.array([3.0])}, {"y": np.array([3.0, np.nan])}):
        assert relative_error(found, wanted) == float("inf")


def test_the_steady_state_is_the_median_of_the_rounds_medians() -> None:
    found = steady([[1.0, 2.0, 90.0], [4.0, 4.0], [3.0]])
    assert (found.median_ms, found.least_ms, found.most_ms, found.rounds, found.samples) == (3.0, 2.0, 4.0, 3, 6)
    assert found.spread == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no round"):
        steady([[]])


def test_turns_reverse_every_second_round() -> None:
    assert turns("abc", 3) == [["a", "b", "c"], ["c", "b", "a"], ["a", "b", "c"]]


def test_a_row_that_failed_has_no_time_even_with_samples() -> None:
    assert Row(contender="a", status="failed", rounds_ms=[[1.0]]).steady is None
