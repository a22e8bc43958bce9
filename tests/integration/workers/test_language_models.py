"""Language models as jobs: from an experiment's file to its results, on a virtual phone, with the real agent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from orchestrator.acts.submission.prepare import prepare
from orchestrator.analysis.statistics import told_of
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment import Conditions, Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import DoubtCode, Outcome, Record
from orchestrator.report import console, export
from orchestrator.report.html import render
from orchestrator.spec.expansion.expand import cells_of
from orchestrator.system.config import Settings
from tests.unit.kernels.front.decoders import SOURCES, SPELLINGS, Drawn, drawn
from tests.unit.kernels.front.gguf_models import write_decoder
from tests.unit.report.records import built
from tests.widths import drawn as shown
from virtual_phones.faults import ThermalTrip
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.engines import Engines, Host
from workers.engines.models import texts
from workers.engines.pocketfarm.measure.ports import TOKENS
from workers.engines.pocketfarm.program import PlanProgram
from workers.execution.run_job import Workbench, run_job

from .conftest import Wiring

SAMPLES = 3


@pytest.fixture
def bench(lab_settings: Settings, lab: Wiring) -> Workbench:
    made = Workbench(lab_settings, Fleet(), Engines(Host.alone(lab_settings.state)), "worker-1")
    made.fleet.enrol(*enrol_phone(lab.connection, lab_settings))
    return made


def asked(
    model: Drawn, state: Path, backend: str, sampling: dict[str, object] | None = None, **text: object
) -> Experiment:
    """Return the experiment as `farm run` takes it."""
    experiment = {
        "name": "talks",
        "workload": {"language_model": model.path.name, "seed": 7, **text},
        "matrix": {"backend": backend, **({"threads": 1} if backend == "cpu" else {})},
        "sampling": sampling or {"samples": SAMPLES, "blocks": 2},
    }
    return prepare(Experiment.model_validate(experiment), model.path.parent, Artifacts(state))


def run(
    bench: Workbench, experiment: Experiment, serial: str, report: Callable[..., None] = lambda *_: None
) -> list[Record]:
    """Each block of each cell."""
    found = []
    for cell in cells_of(experiment):
        for block in range(experiment.sampling.blocks):
            job = Job(
                experiment_id="e-1", cell=cell, block=block, candidates=(serial,), sampling=experiment.sampling,
                conditions=experiment.conditions, measure=experiment.measure,
            )  # fmt: skip
            one = Assignment(
                serial=serial, host="testhost", job_id=job.job_id, job=job, attempt=1, token=len(found) + 1, ttl_s=15.0
            )
            found.append(run_job(one, bench, lambda: None, report))
    return found


@pytest.mark.parametrize(
    ("backend", "sources"), [("cpu", ("gguf",)), ("cpu", SPELLINGS), ("opencl", SOURCES), ("vulkan", SOURCES)]
)
def test_an_experiment_tells_prompt_and_generation_apart(
    bench: Workbench, lab: Wiring, tmp_path: Path, seed: int, backend: str, sources: tuple[str, ...]
) -> None:
    """The tokens are onnxruntime's, of a text or of several side by side; each figure is the ratio of sums of the
    record's own times, in every output. All tokens are compared, and no run inside the clock takes more than the
    prompt."""
    rng = np.random.default_rng([seed, len(backend)])
    model, batch = drawn(tmp_path, rng, str(rng.choice(sources))), int(rng.choice([1, rng.integers(2, 5)]))
    prompt, generate, context = int(rng.integers(2, 20)), int(rng.integers(2, 12)), int(rng.integers(1, 80))
    text = {"prompt": prompt, "generate": generate, "context": [0, context], **({"batch": batch} if batch > 1 else {})}
    experiment = asked(model, bench.settings.state, backend, **text)
    records, cells = run(bench, experiment, lab.serial), {each.cell_id: each for each in cells_of(experiment)}
    for record in records:
        assert record.outcome is Outcome.OK, record.reasons
        before, wanted = cells[record.cell_id].options["context"], model_tokens(model, 7, record)
        for sample in record.samples:
            assert (sample.context, sample.prompt, sample.answers) == (before, prompt, wanted)
            assert sample.computed == prompt
            assert len(sample.token_ns) == generate
        assert [check.name for check in record.checks] == ["tokens"] and record.checks[0].ok
        assert DoubtCode.PARTLY_COMPARED not in {doubt.code for doubt in record.doubts}
    whole = built("e-1", experiment, cells=cells, records=records, outcomes={"ok": len(records)}, now=1e9)
    assert len(whole.summaries) == 2
    as_json = json.loads(json.dumps(export.as_data(whole)))["summaries"]
    table, page = shown(console.render(whole), 200), render(whole)
    for summary, data in zip(whole.summaries, as_json, strict=True):
        own = [each for each in records if each.cell_id == summary.cell_id]
        speeds = [figures(each) for each in own]
        assert data["prompt_tokens_per_s"]["value"] == pytest.approx(np.median([each[0] for each in speeds]))
        assert data["generated_tokens_per_s"]["value"] == pytest.approx(np.median([each[1] for each in speeds]))
        if batch > 1:
            of_each = np.median([each[1] for each in speeds]) / batch
            assert data["generated_tokens_of_each_per_s"]["value"] == pytest.approx(of_each)
        assert data["first_token_ms"]["value"] > 0 and data["between_tokens_ms"]["value"] > 0
        assert {"prompt tokens", "generated tokens", "first token"} <= {told.metric for told in told_of(summary)}
    for words in ("prompt tokens/s", "generated tokens/s", "answer ms"):
        assert words in table and words in page


def test_a_hot_phone_ends_an_answer_and_nothing_is_lost(
    bench: Workbench, lab: Wiring, tmp_path: Path, seed: int
) -> None:
    """The phone becomes hot in mid-load: the record has what was measured, with a cause, and figures of the block."""
    rng = np.random.default_rng(seed)
    model = drawn(tmp_path, rng, str(rng.choice(SPELLINGS)))
    experiment = asked(
        model, bench.settings.state, "cpu", {"mode": "sustained", "load": "90 s", "blocks": 1, "deadline": "5 min"},
        prompt=4, generate=30,
    ).model_copy(update={"conditions": Conditions(stop_temp=50.0)})  # fmt: skip
    started = time.monotonic()

    def heat(word: str, *_: object) -> None:
        if word == "running":
            lab.phones.control.fault(lab.phones.phones[0].name, ThermalTrip(temp_c=55.0, seconds=600))

    (record,) = run(bench, experiment, lab.serial, heat)
    assert (record.outcome, record.cause) == (Outcome.INVALID, "too_hot"), record.reasons
    assert [(each.code, each.detail) for each in record.invalid] == [("too_hot", record.reasons[0])]
    assert "above 50 C: the load ended after" in record.reasons[0] and time.monotonic() - started < 80
    (answer,) = model_tokens(model, 7, record)
    assert {each.tokens for each in record.samples} <= {answer, record.samples[-1].tokens}
    assert answer[: len(record.samples[-1].tokens)] == record.samples[-1].tokens
    assert all(each.ok for each in record.checks)


def model_tokens(model: Drawn, seed: int, record: Record) -> tuple[tuple[int, ...], ...]:
    sample = record.samples[0]
    draws = [np.random.default_rng([seed, number] if number else seed) for number in range(sample.sequences)]
    given = [each.integers(0, model.words, sample.context + sample.prompt) for each in draws]
    return tuple(tuple(replace(model, prompt=tuple(map(int, each))).greedy(len(sample.token_ns))) for each in given)


def figures(record: Record) -> tuple[float, float]:
    timed = [each for each in record.samples if each.phase == "timed"]
    assert len(timed) == SAMPLES
    first_s = sum(each.token_ns[0] - each.start_ns for each in timed) / 1e9
    later_s = sum(each.token_ns[-1] - each.token_ns[0] for each in timed) / 1e9
    later = sum(len(each.tokens) - each.sequences for each in timed)
    return sum(each.sequences * each.prompt for each in timed) / first_s, later / later_s


def test_wrong_tokens_are_told(
    bench: Workbench, lab: Wiring, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent gets another prompt than the reference: its answer is refused where it is another, with its place. A
    model that is too large to be compared whole is compared in part, and a doubt says so."""
    rng = np.random.default_rng(seed)
    model = drawn(tmp_path, rng, str(rng.choice(SOURCES)))
    experiment = asked(model, bench.settings.state, "cpu", prompt=6, generate=9)
    monkeypatch.setattr(texts, "MOST_WORK", 0.0)
    right, again = run(bench, experiment, lab.serial)
    for record in (right, again):
        assert record.outcome is Outcome.OK
        told = [doubt.detail for doubt in record.doubts if doubt.code is DoubtCode.PARTLY_COMPARED]
        assert told == ["the first 4 of 9 tokens were compared with the reference's"]
    monkeypatch.setattr(texts, "MOST_WORK", 1e12)
    honest, answer = PlanProgram.of, right.samples[0].tokens

    def other(*given: object) -> PlanProgram:
        """Replace the prompt by tokens that another answer follows."""
        made = honest(*given)  # type: ignore[arg-type]
        while True:
            tokens = rng.integers(0, model.words, 6)
            if replace(model, prompt=tuple(map(int, tokens))).greedy(9) != list(answer):
                made.inputs = {TOKENS: tokens}
                return made

    monkeypatch.setattr(PlanProgram, "of", other)
    for record in run(bench, experiment, lab.serial):
        assert (record.outcome, record.cause) == (Outcome.INVALID, "wrong_output")
        assert "of the answer is" in record.reasons[0] and not record.checks[0].ok


def test_files_that_are_no_decoders_are_refused_at_submission(tmp_path: Path, seed: int) -> None:
    model = drawn(tmp_path, np.random.default_rng(seed), "shape")
    proto = onnx.load(model.path)
    del proto.graph.output[1:]
    onnx.save(proto, model.path)
    with pytest.raises(ModelFileError, match=r"workload\.language_model.*export the decoder with its cache"):
        asked(model, tmp_path / "state", "cpu")


def test_gguf_files_that_cannot_be_run_are_refused_at_submission(tmp_path: Path, seed: int) -> None:
    """The head of the file tells enough: the text fits what the model has learnt, the architecture is known, nothing is
    cut."""
    rng = np.random.default_rng(seed)
    model, state = drawn(tmp_path, rng, "gguf"), tmp_path / "state"
    assert asked(model, state, "cpu", prompt=100, generate=29).workload.language_model_sha256
    with pytest.raises(ModelFileError, match=r"workload\.language_model: .*130.*has learnt 128"):
        asked(model, state, "cpu", prompt=[3, 100], generate=31)
    content = model.path.read_bytes()
    model.path.write_bytes(content[: int(rng.integers(4, len(content)))])
    with pytest.raises(ModelFileError, match=r"workload\.language_model: m\.gguf: .*copy or download it again"):
        asked(model, state, "cpu")
    write_decoder(model.path, "llama", rng)
    model.path.write_bytes(model.path.read_bytes().replace(b"llama", b"mamba"))
    with pytest.raises(ModelFileError, match=r"m\.gguf: architecture 'mamba' is not known; known are llama"):
        asked(model, state, "cpu")


def test_a_prompt_may_be_given(bench: Workbench, lab: Wiring, tmp_path: Path, seed: int) -> None:
    """A file of tokens, behind a context that is drawn: the answer is onnxruntime's behind both. The prompt travels by
    its hash, and is as long as it is; tokens that the model lacks are refused."""
    rng = np.random.default_rng(seed)
    model, state = drawn(tmp_path, rng, str(rng.choice(SOURCES))), bench.settings.state
    prompt = [*map(int, rng.integers(0, model.words, int(rng.integers(1, 20))))]
    (tmp_path / "own.txt").write_text(str(prompt))
    np.save(tmp_path / "own.npy", np.array(prompt, np.int32))
    name, context = str(rng.choice(["own.txt", "own.npy"])), int(rng.integers(0, 20))
    asked_for = {"generate": 7, "context": context}
    experiment = asked(model, state, "cpu", prompt={"tokens": name}, **asked_for)
    kept = Experiment.model_validate_json(experiment.model_dump_json())
    assert (kept.matrix.prompt, kept.workload.prompt) == ((len(prompt),), None)
    before = np.random.default_rng(7).integers(0, model.words, context)
    wanted = replace(model, prompt=(*map(int, before), *prompt)).greedy(7)
    for record in run(bench, kept, lab.serial):
        assert record.outcome is Outcome.OK, record.reasons
        assert {(each.prompt, each.tokens) for each in record.samples} == {(len(prompt), tuple(wanted))}
    (tmp_path / "own.txt").write_text(f"1 {model.words}")
    with pytest.raises(ModelFileError, match=f"prompt: token {model.words}; the model's vocabulary has"):
        asked(model, state, "cpu", prompt={"tokens": "own.txt"}, **asked_for)
    (tmp_path / "own.txt").write_text("once")
    with pytest.raises(ModelFileError, match="no numbers of tokens"):
        asked(model, state, "cpu", prompt={"tokens": "own.txt"}, **asked_for)
