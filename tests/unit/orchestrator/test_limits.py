"""The search for a device's limits: it ends, near the truth, whatever the truth is, and says what stopped it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.limits import REPEATS, ended, next_value, weights_of
from orchestrator.model.device import Api
from orchestrator.model.experiment import Experiment, LimitSearch, Matrix, Sampling, Workload
from orchestrator.model.job import Job
from orchestrator.scheduling.strategies import Place, Result, Slot
from orchestrator.scheduling.strategies.limit_search import LimitSearcher
from orchestrator.spec.expansion.expand import expand
from orchestrator.spec.expansion.expand import job as job_of

from . import make

STUDY = Workload(network="autoencoder_784", parameters={"hidden": (64, 250, 10)})


def searching(matrix: Matrix | None = None, **search: object) -> Experiment:
    wanted = {"limit_search": {"dimension": "hidden.0", **search}}
    return make.experiment(workload=STUDY, matrix=matrix or Matrix(), strategy=wanted)


def run(experiment: Experiment, outcomes: object) -> list[tuple[int, str]]:
    """Values and outcomes in the order of their probes; a new strategy for each decision, told everything again."""
    assert callable(outcomes)
    dimension = experiment.strategy.limit_search.dimension  # type: ignore[union-attr]
    place = Place(experiment, "e-1", ("A",))
    todo: list[Job] = list(expand(experiment, "e-1", [make.device("A")]).jobs)
    results: list[Result] = []
    for _ in range(100):
        for job in todo:
            outcome, cause = outcomes(job.cell.value(dimension), job.block)
            results.append(Result(job, outcome, cause))
        strategy = LimitSearcher(place)
        strategy.tell(results)
        todo = [job_of(experiment, "e-1", slot) for slot in strategy.ask()]
        if not todo:
            ids = [result.job.job_id for result in results]
            assert len(set(ids)) == len(ids), "no job is asked for twice"
            return [(result.job.cell.value(dimension), result.outcome) for result in results]
    raise AssertionError("it does not end")


@given(st.integers(1, 3_000_000), st.integers(1, 4096), st.floats(0.001, 0.5), st.sampled_from([1, 16]))
def test_the_answer_is_as_near_as_was_asked_for(limit: int, start: int, tolerance: float, step: int) -> None:
    start = -(-start // step) * step
    search = LimitSearch(dimension="batch", most=1 << 20, tolerance=tolerance, step=step)
    tried, value = dict[int, bool](), start
    while value is not None:
        assert value not in tried and 0 < value <= search.most
        tried[value] = value <= limit
        value = next_value(search, [v for v in tried if tried[v]], [v for v in tried if not tried[v]])
    ran, not_run = [v for v in tried if tried[v]], [v for v in tried if not tried[v]]
    assert len(tried) <= 45
    if not ran:
        assert min(not_run) < 2 * step and limit < min(not_run)
    elif not not_run:
        assert max(ran) == search.most
    else:
        assert min(not_run) - max(ran) <= max(2 * step - 1, tolerance * max(ran))


def test_it_doubles_and_then_divides() -> None:
    probes = run(searching(tolerance=0.05), lambda n, _: ("ok", "") if n <= 300 else ("killed", "killed"))
    assert [n for n, _ in probes] == [64, 128, 256, 512, 512, 384, 384, 320, 320, 288, 304, 304, 296]
    assert [outcome for _, outcome in probes] == ["ok"] * 3 + ["killed"] * 6 + ["ok", "killed", "killed", "ok"]


def test_one_kill_alone_does_not_decide() -> None:
    """Something else had the memory when 256 was first tried."""

    def outcome(n: int, block: int) -> tuple[str, str]:
        return ("killed", "killed") if n > 300 or (n, block) == (256, 0) else ("ok", "")

    probes = run(searching(tolerance=0.4), outcome)
    assert probes[:4] == [(64, "ok"), (128, "ok"), (256, "killed"), (256, "ok")]
    assert [n for n, _ in probes[4:]] == [512, 512, 384, 384, 320, 320]


def test_what_the_farm_lost_is_repeated_and_never_a_limit() -> None:
    def lost_at_first(n: int, block: int) -> tuple[str, str]:
        return ("lost", "transport_lost") if n in (128, 320) and block == 0 else ("ok" if n <= 300 else "killed", "")

    probes = run(searching(tolerance=0.05), lost_at_first)
    values = [n for n, outcome in probes if outcome != "lost"]
    assert list(dict.fromkeys(values)) == [64, 128, 256, 512, 384, 320, 288, 304, 296]
    always = run(searching(), lambda n, _: ("lost", "device_sick") if n > 64 else ("ok", ""))
    assert always == [(64, "ok")] + [(128, "lost")] * REPEATS, "it gives up, without an answer"


@pytest.mark.parametrize(
    ("outcome", "cause", "why", "mend"),
    [
        (
            "failed",
            "model_file",
            "ended at `autoencoder_784 hidden=128-250-10 opencl fp32`: model_file",
            "mend the cause",
        ),
        ("lost", "transport_lost", "lost 3 times (transport_lost)", "`farm retry e-1` goes on"),
        ("killed", "crashed", "crashed", "mend the cause"),
    ],
)
def test_what_is_no_limit_ends_the_search_with_its_reason(outcome: str, cause: str, why: str, mend: str) -> None:
    experiment = searching()
    probes = run(experiment, lambda n, _: (outcome, cause) if n > 64 else ("ok", ""))
    assert set(probes) == {(64, "ok"), (128, outcome)}
    first = expand(experiment, "e-1", [make.device("A")]).jobs[0]
    bad = [job_of(experiment, "e-1", Slot(first.cell.at("hidden.0", 128), ("A",), block)) for block in range(3)]
    strategy = LimitSearcher(Place(experiment, "e-1", ("A",)))
    strategy.tell([Result(first, "ok"), *(Result(job, outcome, cause) for job in bad)])
    assert strategy.ask() == [] and strategy.stopped is not None
    assert why in strategy.stopped.why and mend in strategy.stopped.remedy


def test_a_cancelled_probe_ends_the_search() -> None:
    assert run(searching(), lambda n, _: ("", "") if n > 64 else ("ok", "")) == [(64, "ok"), (128, "")]


def test_each_cell_is_searched_by_itself() -> None:
    both = searching(matrix=Matrix(backend=(Api.OPENCL,), fuse=("all", "none")), tolerance=0.4)
    probes = run(both, lambda n, _: ("ok" if n <= 100 else "failed", "out_of_memory"))
    assert [n for n, _ in probes] == [64, 64, 128, 128, 96, 96]


@pytest.mark.parametrize(
    ("outcome", "cause", "how"),
    [
        ("ok", "", "ran"), ("invalid", "throttled", "ran"), ("invalid", "wrong_output", "failed"),
        ("killed", "killed", "killed"), ("failed", "out_of_memory", "refused"), ("failed", "limit", "refused"),
        ("failed", "compile", "failed"), ("failed", "model_file", "failed"), ("killed", "crashed", "failed"),
        ("failed", "build_failed", "failed"), ("lost", "transport_lost", "lost"), ("", "", "cancelled"),
    ],
)  # fmt: skip
def test_how_a_probe_ended(outcome: str, cause: str, how: str) -> None:
    assert ended(outcome, cause) == how


@pytest.mark.parametrize("n", [500, 3150, 5950])
def test_weights_are_those_of_the_studys_formula(n: int) -> None:
    workload = STUDY.model_copy(update={"parameters": {"hidden": (n, 250, 10)}})
    assert weights_of(workload) == 785 * n + (n + 1) * 250 + 251 * 10


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"dimension": "depth"}, "`depth` is neither an axis that is a number nor a parameter"),
        ({"dimension": "algorithm"}, "`algorithm` is neither"),
        ({"dimension": "hidden"}, "name one of its numbers, `hidden.0` to `hidden.2`"),
        ({"dimension": "hidden.3"}, "name one of its numbers"),
        ({"dimension": "batch"}, "give `matrix.batch` one value"),
        ({"most": 10}, "begins at 64, above `most`"),
    ],
)
def test_what_cannot_be_searched_is_refused(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        searching(**fields)


def test_a_probe_is_one_block() -> None:
    assert searching().sampling.blocks == 1
    with pytest.raises(ValueError, match="a probe is one block"):
        Experiment.model_validate(searching().model_dump() | {"sampling": Sampling(blocks=3)})
