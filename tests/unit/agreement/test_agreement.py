"""Shards are put together, compared with the base, and what is missing is named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.agreement import Answer, Gap, agreements, compare, margin_bins
from orchestrator.model.device import Api, Precision
from orchestrator.model.errors import StableError
from orchestrator.model.record import InvalidCode, Invalidity, Outcome
from tests.unit.report.records import figures

from . import made

pytestmark = pytest.mark.unit

BASE = list(range(25))
OTHER = [*range(20), 1, 2, 3, 23, 24]
LABELS = [*range(20), 1, 21, 9, 23, 0]
"""The change makes 20 right, 21 wrong, 22 stays wrong."""
BOTH: dict[Precision, Sequence[int]] = {Precision.FP32: BASE, Precision.FP16: OTHER}
Answers = dict[int, Answer]


def test_shards_are_compared_example_by_example_with_the_first_cell_in_fp32() -> None:
    of = made.experiment()
    jobs = made.expanded(of).jobs
    found = made.agreement(of, jobs, made.records(jobs, BOTH), LABELS)
    assert found.base is not None and found.base.label == "lenet cpu fp32"
    fp16, base = found.rows
    assert base.result == found.base and base.comparison is None and fp16.comparison is not None
    assert (base.result.examples, base.result.missing, base.result.gaps) == (25, 0, ())
    assert [row.result.top1.count if row.result.top1 else 0 for row in found.rows] == [22, 22]
    assert [row.result.top5.count if row.result.top5 else 0 for row in found.rows] == [22, 22]
    assert (fp16.comparison.same.count, fp16.comparison.same.of) == (22, 25)
    assert [(c.example, c.base_class, c.this_class, c.label) for c in fp16.comparison.changed] == [
        (20, 20, 1, 1), (21, 21, 2, 21), (22, 22, 3, 9),
    ]  # fmt: skip
    assert (fp16.comparison.became_right, fp16.comparison.became_wrong, fp16.comparison.mcnemar_p) == (1, 1, 1.0)


def test_each_device_is_a_result_unless_they_share_the_set_out() -> None:
    own, shared = made.experiment(), made.experiment(count="any")
    jobs = made.expanded(own, "B", "A").jobs
    rows = made.agreement(own, jobs, made.records(jobs, BOTH)).rows
    assert [(row.result.precision, row.result.serials, row.result.examples) for row in rows] == [
        (precision, (serial,), 25) for precision in ("fp16", "fp32") for serial in "AB"
    ]
    jobs = made.expanded(shared, "A", "B").jobs
    found = [made.record(job, BOTH[job.cell.precision], serial="AB"[job.block % 2]) for job in jobs]
    assert [(row.result.serials, row.result.examples) for row in made.agreement(shared, jobs, found).rows] == [
        (("A", "B"), 25), (("A", "B"), 25),
    ]  # fmt: skip


def test_missing_examples_are_named_and_not_compared() -> None:
    of = made.experiment(45)
    classes = list(range(45))
    jobs = made.expanded(of).jobs
    found = [made.record(job, classes) for job in jobs if job.block != 4 or job.cell.precision is Precision.FP32]
    bad = {Outcome.INVALID: 0, Outcome.FAILED: 2}
    found = [
        made.record(job, classes, outcome=outcome)
        for record in found
        for job in jobs if job.job_id == record.job_id
        for outcome in [next((o for o, b in bad.items() if (job.block, job.cell.precision) == (b, "fp16")), Outcome.OK)]
    ]  # fmt: skip
    fp16, base = made.agreement(of, jobs, found).rows
    assert base.result.missing == 0
    assert (fp16.result.examples, fp16.result.missing, fp16.result.failed) == (20, 25, 20)
    assert fp16.result.gaps == (Gap(first=0, last=9), Gap(first=20, last=29), Gap(first=40, last=44))
    assert fp16.comparison is not None and (fp16.comparison.same.count, fp16.comparison.same.of) == (20, 20)


@pytest.mark.parametrize(("code", "counted"), [(InvalidCode.THROTTLED, True), (InvalidCode.WRONG_OUTPUT, False)])
def test_spoilt_times_do_not_spoil_predictions(code: InvalidCode, counted: bool) -> None:
    of = made.experiment(10)
    jobs = made.expanded(of).jobs
    spoilt = {"outcome": Outcome.INVALID, "cause": str(code), "invalid": (Invalidity(code=code, detail=""),)}
    found = [made.record(job, list(range(10))).model_copy(update=spoilt) for job in jobs]
    examples = {row.result.examples for row in made.agreement(of, jobs, found).rows}
    assert examples == ({10} if counted else {0})


def test_of_several_attempts_the_newest_counts_and_canaries_never() -> None:
    of = made.experiment(10)
    jobs = made.expanded(of).jobs
    found = made.records(jobs, {Precision.FP32: BASE, Precision.FP16: BASE})
    fp16 = next(job for job in jobs if job.cell.precision is Precision.FP16)
    found += [made.record(fp16, OTHER[::-1], attempt=2, token=2)]
    found += [made.record(fp16, OTHER, token=3).model_copy(update={"role": "canary", "job_id": "c"})]
    (row, _) = made.agreement(of, jobs, found).rows
    assert row.comparison is not None and row.comparison.same.count == 0


def test_another_base_is_chosen_by_whole_words() -> None:
    of = made.experiment(backend=(Api.CPU, Api.OPENCL))
    jobs = made.expanded(of, "A", "B").jobs
    found = made.records(jobs, BOTH)

    def base(words: str) -> str:
        one = made.agreement(of, jobs, found, base=words).base
        return f"{one.label} {one.serials[0]}" if one else ""

    assert base("") == "lenet cpu fp32 A"
    assert base("fp16") == "lenet cpu fp16 A"
    assert base("B opencl") == "lenet opencl fp16 B"
    with pytest.raises(StableError, match=r"lenet opencl fp16 B"):
        base("fp1")


def test_different_networks_are_never_compared() -> None:
    of = made.experiment(network=("lenet", "cifar10_quick"))
    jobs = made.expanded(of).jobs
    found = agreements(figures(made.records(jobs, BOTH), made.cells(jobs)), made.cells(jobs), of)
    assert [(one.workload, len(one.rows)) for one in found] == [("lenet", 2), ("cifar10_quick", 2)]
    with pytest.raises(StableError):
        agreements(figures(made.records(jobs, BOTH), made.cells(jobs)), made.cells(jobs), of, base="vulkan")
    one_base = agreements(
        figures(made.records(jobs, BOTH), made.cells(jobs)), made.cells(jobs), of, base="cifar10_quick"
    )
    assert [one.base is None for one in one_base] == [True, False]


def test_before_the_first_block_there_is_no_base() -> None:
    of = made.experiment()
    found = made.agreement(of, made.expanded(of).jobs, [], LABELS)
    assert found.base is None and found.margins == ()
    assert [(row.result.examples, row.result.missing, row.result.top1) for row in found.rows] == [(0, 25, None)] * 2


def test_an_experiment_without_a_set_agrees_on_nothing() -> None:
    of = made.make.experiment()
    jobs = made.expanded(of).jobs
    assert (
        agreements(figures([made.make.record(jobs[0], attempt=1, token=1)], made.cells(jobs)), made.cells(jobs), of)
        == ()
    )


answers = st.dictionaries(
    st.integers(0, 30),
    st.builds(Answer, st.permutations(range(7)).map(lambda order: tuple(order[:5])), st.floats(0, 1e6)),
)


@given(answers, answers, st.lists(st.integers(0, 7), min_size=31, max_size=31))
def test_agreement_is_symmetrical_and_counts_add_up(a: Answers, b: Answers, labels: list[int]) -> None:
    there, back = compare(a, b, labels), compare(b, a, labels)
    if there is None or back is None:
        assert there is back and not a.keys() & b.keys()
        return
    assert (there.same, there.same_five, there.mcnemar_p) == (back.same, back.same_five, back.mcnemar_p)
    assert there.kappa == pytest.approx(back.kappa)
    assert (there.became_right, there.became_wrong) == (back.became_wrong, back.became_right)
    assert there.same.count + len(there.changed) == there.same.of == len(a.keys() & b.keys())
    right = [sum(labels[place] == one[place].top[0] for place in a.keys() & b.keys()) for one in (a, b)]
    assert right[1] - right[0] == (there.became_right or 0) - (there.became_wrong or 0)


@given(answers.filter(bool))
def test_everything_agrees_with_itself(a: Answers) -> None:
    found = compare(a, a, None)
    assert found is not None and found.same.share == 1.0 and found.changed == () and found.kappa in (None, 1.0)
    assert found.same_five is not None and found.same_five.share == 1.0
    assert found.mcnemar_p is found.became_right is found.became_wrong is None


@given(answers.filter(bool), st.sets(st.integers(0, 30)))
def test_every_margin_lies_in_one_bin(a: Answers, changed: set[int]) -> None:
    bins = margin_bins(a, changed & a.keys())
    if not bins:
        assert all(answer.margin < 2.3e-302 for answer in a.values())
        return
    assert (sum(each.examples for each in bins), sum(each.changed for each in bins)) == (
        len(a),
        len(changed & a.keys()),
    )
    assert [each.high for each in bins[:-1]] == [each.low for each in bins[1:]]
    assert bins[0].low == 0 and all(each.low < each.high for each in bins)


@pytest.mark.parametrize("largest", [5e-324, 2.3e-308, 2e-302, 3e-302, 1e-45, 1.0, 1.7e308])
def test_bins_are_different_numbers_at_every_scale(largest: float) -> None:
    bins = margin_bins({0: Answer((0, 1), largest), 1: Answer((0, 1), 0.0)}, {0})
    assert sum(each.examples for each in bins) in (0, 2) and bool(bins) == (largest > 2.3e-302)
    assert all(each.low < each.high for each in bins)


def test_of_few_classes_there_are_no_best_five() -> None:
    few = {0: Answer((1, 0), 0.5), 1: Answer((0, 1), 0.5)}
    found = compare(few, few, [1, 1])
    assert found is not None and found.same_five is None and found.same.count == 2
