"""Language models as servers: the first token and the tokens behind it, under load, by theory and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.ledger import Ledger
from orchestrator.model.device import Api
from orchestrator.model.errors import NotComparable
from orchestrator.model.event import Sample
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell
from orchestrator.queueing.kept.columns import pack_requests, unpack_requests
from orchestrator.queueing.measured import fill_times
from orchestrator.queueing.measures import Figure, measure
from orchestrator.queueing.oracle import theory_of
from orchestrator.queueing.requests import Run
from orchestrator.queueing.spec import Answer, Batch, QueueingSpec
from orchestrator.queueing.spec.inference import Inference
from tests.unit.imports.conftest import Farm
from tests.unit.imports.conftest import farm as farm
from tests.unit.imports.conftest import ledger as ledger
from tests.unit.orchestrator import make as orchestrated

from .make import make, request_class, run

CHAT = {"kind": "answer", "prompt": [16, 200], "generate": [8, 120], "prompt_token": "2 ms", "token": "20 ms"}
FIXED = {"kind": "fixed", "mean": "10 ms"}
MEAN_S = 108 * 0.002 + 63 * 0.02


def spec_of(load: float, requests: float, service: dict[str, Any] = CHAT, **more: Any) -> QueueingSpec:
    mean_s = Answer.model_validate(service).mean
    rate = load / mean_s
    return make([request_class(rate=rate, service=service)], duration=f"{requests / rate} s", **more)


def agrees(figure: Figure, value: float) -> bool:
    """Judge whether an interval holds the value, or nearly: one in twenty misses it."""
    assert figure.value is not None
    assert figure.low is not None
    assert figure.high is not None
    room = 0.5 * (figure.high - figure.low)
    return figure.low - room <= value <= figure.high + room


def test_times_of_answers_are_those_of_their_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = sorted(int(each) for each in rng.integers(1, 400, 2))
    prompt_s, token_s = (float(each) for each in rng.uniform(1e-3, 0.1, 2))
    answer = Answer.model_validate({
        "kind": "answer", "prompt": [low, high], "generate": int(rng.integers(1, 300)),
        "prompt_token": f"{prompt_s} s", "token": f"{token_s} s",
    })  # fmt: skip
    drawn = answer.draw(rng, 200_000)
    assert drawn.mean() == pytest.approx(answer.mean, rel=0.01)
    assert drawn.var() / drawn.mean() ** 2 == pytest.approx(answer.scv, rel=0.03, abs=1e-9)
    assert Answer.model_validate(CHAT).mean == pytest.approx(MEAN_S)


@pytest.mark.parametrize("fixed", [False, True], ids=["M/G/1", "M/D/1"])
def test_one_at_a_time_is_theorys_queue_and_the_first_token_waits_with_it(fixed: bool, seed: int) -> None:
    """The first token comes after the wait of the formula, and the prompt."""
    service = {**CHAT, "prompt": 64, "generate": 32} if fixed else CHAT
    spec = spec_of(0.6, 12_000, service, seed=seed % 1000)
    (line,) = theory_of(spec)
    infer = Inference(language_model="m.onnx", backend=Api.CPU)
    computed = spec.model_copy(update={"classes": tuple(e.model_copy(update={"infer": infer}) for e in spec.classes)})
    assert theory_of(computed) == [line] and theory_of(computed, "phone") == [], "what was computed took its own time"
    assert line.name == ("M/D/1" if fixed else "M/G/1")
    total = measure(spec, [run(spec, seed % 1000)]).total
    assert total.first_token_s is not None
    assert total.token_s is not None
    assert total.tokens_per_s is not None
    answer = spec.classes[0].service
    assert isinstance(answer, Answer)
    assert agrees(total.sojourn_s.mean, line.sojourn_s)
    assert agrees(total.first_token_s.mean, line.waiting_s + answer.prompt_s)
    assert total.token_s.p50.value == pytest.approx(0.02, rel=1e-6), "alone, tokens come at the model's own pace"
    tokens = 32 if fixed else 64
    assert total.tokens_per_s.value == pytest.approx(0.6 / answer.mean * tokens, rel=0.08)


def test_a_shared_server_is_theorys_whatever_the_times(seed: int) -> None:
    """Requests that come and go, n of them n times as slow: processor sharing, which is insensitive."""
    spec = spec_of(0.55, 20_000, batch={"size": 64, "marginal": 1.0, "continuous": True})
    (line,) = theory_of(spec)
    assert line.name == "M/G/1, shared"
    total = measure(spec, [run(spec, seed % 1000)]).total
    assert agrees(total.sojourn_s.mean, line.sojourn_s) and agrees(total.utilisation, line.utilisation)
    assert total.first_token_s is not None
    answer = spec.classes[0].service
    assert isinstance(answer, Answer)
    assert agrees(total.first_token_s.mean, answer.prompt_s / 0.45), "sharing slows each part of a service alike"


def test_requests_that_cost_nothing_beside_others_are_as_quick_as_alone(seed: int) -> None:
    spec = spec_of(0.9, 2_000, batch={"size": 1000, "marginal": 0.0, "continuous": True})
    done = run(spec, seed % 1000).requests.done
    behind_s = (done.column("tokens") - 1) * 0.02
    assert done.waiting_s.max() == pytest.approx(0.0, abs=1e-9)
    assert done.column("ended") - done.column("first") == pytest.approx(behind_s, abs=1e-6)
    assert done.sojourn_s == pytest.approx(done.column("served_s"), abs=1e-9)


def test_continuous_batches_of_one_are_none(seed: int) -> None:
    one = spec_of(0.7, 2_000, batch={"size": 1, "continuous": True}), spec_of(0.7, 2_000)
    rows = [run(each, seed % 1000).requests.rows for each in one]
    np.testing.assert_allclose(*rows, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("policy", ["fifo", "jsq", "sjf"])
def test_all_is_served_once_and_never_more_than_fit(policy: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(policy)])
    size, servers = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    batch = {"size": size, "marginal": float(rng.uniform(0.05, 0.5)), "continuous": True}
    groups = [{"name": "s", "count": servers, "power": {"busy_w": 2}}]
    load = float(rng.uniform(0.5, 1.1)) * servers
    spec = spec_of(load, 1_500, servers=groups, batch=batch, policy={"name": policy})
    found = run(spec, seed % 1000)
    done = found.requests.done
    assert len(done) == len(found.requests) > 1_000
    for server in range(servers):
        own = done.of(done.column("server") == server)
        edges = np.concatenate([own.column("started"), own.column("ended")])
        steps = np.repeat([1, -1], len(own))
        together = np.cumsum(steps[np.lexsort((steps, edges))])
        assert together.max() <= size and together[-1] == 0
    first, started, ended = (done.column(name) for name in ("first", "started", "ended"))
    assert (first > started).all() and (first <= ended + 1e-9).all()
    busy_s = np.array(found.course.busy_s[-1]).sum()
    late = done.column("ended").max() > found.course.at[-1]
    assert late or done.column("energy_j").sum() == pytest.approx(2 * busy_s, rel=1e-6)


def test_a_batch_that_begins_together_has_its_first_tokens_together(seed: int) -> None:
    """All prompts are read first; a continuous batch has the first token sooner, at the same load."""
    batch = {"size": 8, "marginal": 0.2}
    together = spec_of(1.5, 6_000, batch=batch)
    running = spec_of(1.5, 6_000, batch={**batch, "continuous": True})
    plain, shared = (measure(each, [run(each, seed % 1000)]).total for each in (together, running))
    rows = run(together, seed % 1000).requests.done
    starts, firsts = rows.column("started"), rows.column("first")
    for start in np.unique(starts)[:200]:
        own = firsts[starts == start]
        assert own == pytest.approx(own[0], abs=1e-6)
    assert plain.first_token_s is not None
    assert shared.first_token_s is not None
    assert shared.first_token_s.mean.value < plain.first_token_s.mean.value  # type: ignore[operator]


def test_kept_runs_have_first_tokens_and_older_ones_none(seed: int) -> None:
    answers, plain = run(spec_of(0.5, 300), seed % 1000), run(make(duration="3 s"), seed % 1000)
    for found in (answers, plain):
        (rows,) = unpack_requests(pack_requests([found.requests.rows]), 1)
        np.testing.assert_allclose(rows, found.requests.rows, atol=2e-9, rtol=1e-6, equal_nan=True)
    assert measure_of(plain).first_token_s is None and measure_of(plain).tokens_per_s is None


def measure_of(found: Run) -> Any:
    return measure(make(duration="3 s"), [found]).total


def test_speeds_are_those_of_measured_answers(farm: Farm, ledger: Ledger, seed: int) -> None:
    """Blocks of a language model in the ledger: a server has the medians of their speeds, and says whose they are."""
    rng = np.random.default_rng(seed)
    texts, marginal = int(rng.integers(1, 6)), float(rng.uniform(0.05, 1.0))
    workload = Workload(language_model="m.gguf")
    cell = Cell(workload=workload, backend=Api.CPU, options={"batch": texts} if texts > 1 else {})
    jobs = [orchestrated.job("talks", number).model_copy(update={"cell": cell}) for number in range(5)]
    ledger.submit("talks", orchestrated.experiment(name="talks"), jobs)
    prompt_s, token_s = rng.uniform(0.1, 2.0, 5), rng.uniform(0.01, 0.2, 5)
    for job, first_s, apart_s in zip(jobs, prompt_s, token_s, strict=True):
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 60.0)
        assert begun is not None
        at_ns = tuple(round(1e9 * (first_s + n * apart_s)) for n in range(9))
        sample = Sample(
            seq=0, t_ns=0, index=0, phase="timed", start_ns=0, duration_ns=at_ns[-1], prompt=50,
            tokens=(1,) * 9 * texts, token_ns=at_ns, sequences=texts,
        )  # fmt: skip
        ledger.keep(orchestrated.record(job, attempt=begun.attempt, token=begun.token, samples=(sample,)))
    asked = {"kind": "answer", "prompt": 100, "generate": 11, "ledger": {"experiment": "talks"}}
    batch = {"size": texts, "marginal": marginal, "continuous": True}
    of_all_s = float(2 * np.median(prompt_s) + 10 * np.median(token_s)) / texts
    spec = make([request_class(rate=5 / of_all_s, service=asked)], duration=f"{300 * of_all_s} s", batch=batch)
    filled, (used,) = fill_times(spec, ledger, ledger.experiment)
    answer = filled.classes[0].service
    assert isinstance(answer, Answer)
    together_s = np.median(prompt_s) / 50, np.median(token_s)
    assert np.multiply(answer.times, filled.batch.cost(texts)) == pytest.approx(together_s), "of each of them"
    assert (used.device, used.samples, used.experiment) == ("A", 5, "talks")
    assert filled.capacity() == pytest.approx(1 / of_all_s), "where as many run, it generates what was measured"
    done = run(filled, seed % 1000).requests.done
    assert done.column("ended").max() == pytest.approx(len(done) * of_all_s, rel=0.02)
    if texts > 1:
        fewer = spec.model_copy(update={"batch": Batch(size=texts - 1)})
        with pytest.raises(NotComparable, match=f"{texts} texts side by side, and `batch` has {texts - 1} at most"):
            fill_times(fewer, ledger, ledger.experiment)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"service": {**CHAT, "prompt": [9, 3]}}, "9 is above 3"),
        ({"service": {**CHAT, "ledger": {"experiment": "e"}}}, "either prompt_token and token, or ledger"),
        ({"service": {"kind": "answer", "prompt": 3, "generate": 3, "token": "1 ms"}}, "either prompt_token and token"),
        ({"service": {"kind": "answer", "prompt": 3, "generate": 3}}, "give prompt_token and token, or ledger"),
        ({"infer": {"language_model": "m.onnx", "backend": "cpu"}, "service": FIXED}, "kind: answer, prompt: N"),
        ({"preemption": "resume"}, "leave out `preemption`"),
        ({"infer": {"network": "lenet", "backend": "cpu"}}, "leave out `infer`"),
        ({"batch": {"size": 4, "continuous": True, "window": "1 s"}}, r"leave out `batch\.window`"),
        ({"servers": [{"name": "s", "setup": "1 s"}], "batch": {"size": 4, "continuous": True}}, "leave out `heat`"),
    ],
)
def test_what_does_not_fit_is_refused_with_words(change: dict[str, Any], words: str) -> None:
    of_class = {name: each for name, each in change.items() if name in ("service", "infer")}
    with pytest.raises(ValueError, match=words):
        make([request_class(**{"service": CHAT, **of_class})], **{n: e for n, e in change.items() if n not in of_class})
