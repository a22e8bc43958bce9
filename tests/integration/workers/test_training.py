"""Trainings as jobs: from an experiment's file to the record, on a virtual phone, with the real agent."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.frontend.load import load_workload
from kernels.reference import evaluate
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.figures import figures_of
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.announcement import Learnt
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import cells_of
from orchestrator.system.config import Settings
from tests.training_reference import train_reference
from tests.waiting import eventually
from virtual_phones.faults import KillAgent, Throttle
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.engines import Engines, Host, Report
from workers.engines.pocketfarm.measure.checkpoints import epochs_in, left_by_attempts
from workers.engines.pocketfarm.plans.compiler_options import training_options
from workers.execution.run_job import Workbench, run_job
from workers.files.host_files import HostFiles

from .conftest import Wiring
from .jobs import ok

EPOCHS, SAMPLES, HELD_OUT = 4, 70, 20


@pytest.fixture
def files(tmp_path: Path, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bytes, and classes that can be learnt from them, in `set.npz`."""
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, (SAMPLES + HELD_OUT, 8, 8), dtype=np.uint8)
    labels = data.reshape(-1, 64)[:, :10].argmax(axis=1)
    np.savez(tmp_path / "set.npz", x_train=data, y_train=labels)
    return data, labels


@pytest.fixture
def bench(lab_settings: Settings, lab: Wiring) -> Iterator[Workbench]:
    made = Workbench(lab_settings, Fleet(), Engines(Host.alone(lab_settings.state)), "worker-1")
    made.fleet.enrol(*enrol_phone(lab.connection, lab_settings))
    yield made


def asked(
    tmp_path: Path,
    state: Path,
    epochs: int = EPOCHS,
    network: str = "",
    hidden: tuple[int, ...] = (12, 7),
    **training: object,
) -> Experiment:
    """Return the experiment as `farm run` takes it."""
    data = {"inputs": "set.npz", "held_out": f"{100 * HELD_OUT / (SAMPLES + HELD_OUT)} %"}
    experiment = Experiment.model_validate(
        {
            "name": "trains",
            "workload": {
                "network": network or "classifier_784",
                "parameters": {"hidden": list(hidden)} if network else {"hidden": list(hidden), "inputs": 64},
                "training": {"dataset": data, "epochs": epochs, "batch": 8, "seed": 5, **training},
            },
            "matrix": {"backend": "cpu", "threads": 1},
            "measure": {"quantities": ["latency", "memory"]},
        }
    )
    return prepare(experiment, tmp_path, Artifacts(state))


def assignment(experiment: Experiment, serial: str, attempt: int = 1) -> Assignment:
    (cell,) = cells_of(experiment)
    job = Job(
        experiment_id="e-1", cell=cell, block=0, candidates=(serial,), sampling=experiment.sampling,
        conditions=experiment.conditions, measure=experiment.measure,
    )  # fmt: skip
    return Assignment(
        serial=serial, host="testhost", job_id=job.job_id, job=job, attempt=attempt, token=attempt, ttl_s=15.0
    )


def run(bench: Workbench, one: Assignment, report: Report = lambda *_: None) -> Record:
    return run_job(one, bench, lambda: None, report)


def test_a_training_is_a_job(
    bench: Workbench, lab: Wiring, tmp_path: Path, files: tuple[np.ndarray, np.ndarray]
) -> None:
    """Its epochs equal NumPy's in double precision; its model is a file that answers as the record says."""
    experiment = asked(tmp_path, bench.settings.state, pretraining=2, momentum=0.5, schedule=[[2, 0.5]])
    one = assignment(experiment, lab.serial)
    told: list[tuple[int, int, str]] = []

    def report(phase: str, done: int, total: int, _: object, __: object = None, learnt: Learnt | None = None) -> None:
        if learnt is not None and phase == "running":
            told.append((done, total, learnt.text))

    given: list[str] = []
    state = bench.settings.state
    engines = Engines(Host(state, HostFiles(state), given.append))
    record = ok(run(replace(bench, engines=engines), one, report))
    assert told[-1][:2] == (8, 8) and told[-1][2].startswith(f"train, epoch {EPOCHS}: loss ") and "wrong" in told[-1][2]
    workload, training = experiment.workload, experiment.workload.training
    assert training is not None and training.dataset.size == SAMPLES + HELD_OUT
    graph = load_workload(network=workload.network, onnx=None, seed=workload.seed, batch=8, sizes=workload.parameters)
    data, labels = files[0].reshape(-1, 64), files[1]
    epochs, weights = train_reference(graph, training_options(training, np.uint8), data[:SAMPLES], labels[:SAMPLES])
    assert [(each.stage, each.loss, each.error) for each in epochs] == [
        (each.stage, pytest.approx(each.loss, rel=1e-4), pytest.approx(each.error, abs=1e-6)) for each in record.samples
    ]
    assert "a batch of each stage, put back" in [each.detail for each in record.setup if each.step == "build"]
    assert [each.stage for each in epochs] == ["pretrain:encode1"] * 2 + ["pretrain:encode2"] * 2 + ["train"] * EPOCHS
    trained = record.trained
    assert trained is not None and given == [trained.onnx_sha256, trained.checkpoint_sha256]
    assert trained.evaluated == HELD_OUT and sum(map(sum, trained.confusion)) == HELD_OUT
    model = load_workload(network=None, onnx=Artifacts(bench.settings.state).path(trained.onnx_sha256), seed=None)
    assert model.shapes[model.inputs[0]] == (1, 64)
    held = (data[SAMPLES:] / 255).astype(np.float32)
    found = [evaluate(model, {model.inputs[0]: one[None]})[model.outputs[0]][0] for one in held]
    answers = np.array(found).argmax(axis=1)
    for name, wanted in weights.items():
        if name in graph.constants:
            (got,) = [each for each in model.constants.values() if each.shape == wanted.shape]
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    assert trained.wrong == (answers != labels[SAMPLES:]).sum()
    figures = figures_of(record, one.job.cell)
    assert figures.trained is not None and figures.trained.count == 8 and figures.trained.model == trained
    assert figures.times is not None and figures.times.count == EPOCHS, "of the last stage"


def test_an_autoencoder_leaves_pictures(bench: Workbench, lab: Wiring, tmp_path: Path) -> None:
    """The pictures are of samples that were held out: as they are in the set, and as the model answers that left."""
    data = np.zeros((SAMPLES + HELD_OUT, 28, 28), np.uint8)
    for place, image in enumerate(data):  # a bar and a spot
        image[:, place % 20 : place % 20 + 5] = 200
        image[place % 23, :] = 255
    np.savez(tmp_path / "set.npz", x_train=data)
    experiment = asked(
        tmp_path, bench.settings.state, epochs=3, network="autoencoder_784", hidden=(6, 784),
        loss="mean_squared_error", pretraining=2, learning_rate=0.05,
    )  # fmt: skip
    record = ok(run(bench, assignment(experiment, lab.serial)))
    assert record.trained is not None and not record.trained.confusion and len(record.reconstructions) == 8
    file = Artifacts(bench.settings.state).path(record.trained.onnx_sha256)
    model = load_workload(network=None, onnx=file, seed=None)
    for image, one in zip(data[SAMPLES:], record.reconstructions, strict=False):
        given, answered = (
            np.frombuffer(b64decode(text), np.uint8).reshape(one.height, one.width)
            for text in (one.given, one.answered)
        )
        np.testing.assert_array_equal(given, image)
        values = (image / 255).astype(np.float32).reshape(1, 784)
        answer = evaluate(model, {model.inputs[0]: values})[model.outputs[0]]
        np.testing.assert_allclose(answered, 255 * answer.reshape(28, 28), atol=0.6)
        assert one.difference == pytest.approx(np.sqrt(((answer - values) ** 2).mean()), rel=1e-3)
    first, last = (record.samples[place].loss for place in (4, -1))
    assert np.ptp(answered) > 10 and first is not None and last is not None and last < first, "it has learnt something"


def test_what_was_left_long_ago_is_removed(lab: Wiring, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of other jobs go; one's own stay, however old."""
    folder = f"{lab.connection.folder}/checkpoints"
    assert not left_by_attempts(lab.connection, f"{folder}/own").checkpoint
    for name in ("own", "own.2.jsonl", "own.10.jsonl", "own.part77", "other", "other.1.jsonl"):
        assert lab.connection.shell(["touch", f"{folder}/{name}"]).code == 0
    left = left_by_attempts(lab.connection, f"{folder}/own")
    assert left.checkpoint and left.journals == (f"{folder}/own.2.jsonl", f"{folder}/own.10.jsonl")
    assert len(lab.connection.shell(["ls", folder]).stdout.split()) == 5, "without what was half written"
    monkeypatch.setattr("workers.engines.pocketfarm.measure.checkpoints.KEPT_S", -2)
    assert left_by_attempts(lab.connection, f"{folder}/own") == left
    assert sorted(lab.connection.shell(["ls", folder]).stdout.split()) == [b"own", b"own.10.jsonl", b"own.2.jsonl"]
    line = """{"event":"sample","seq":4,"t_ns":5,"index":0,"phase":"timed","start_ns":1,"duration_ns":2,"stage":"a","""
    half = f'{line}"epoch":7}}\n{line}"ep'
    assert lab.connection.shell(["sh", "-c", f"printf %s '{half}' > {left.journals[0]}"]).code == 0
    assert [one.epoch for one in epochs_in(lab.connection, left.journals)] == [7], "what was lost in mid-line is none"
    assert lab.connection.shell(["rm", f"{folder}/own", *left.journals]).code == 0


def test_another_attempt_goes_on_where_the_device_was(
    bench: Workbench, lab: Wiring, tmp_path: Path, files: tuple[np.ndarray, np.ndarray]
) -> None:
    """Killed twice: bit for bit, and its record has the epochs of all attempts as one that was never killed."""
    experiment = asked(tmp_path, bench.settings.state, epochs=2000, pretraining=2, checkpoint=3)
    folder, total = f"{lab.connection.folder}/checkpoints", 2 * 2 + 2000
    killed: list[int] = []

    def kill(_phase: str, done: int, *_: object) -> None:
        if done > (killed[0] + 20 if killed else 7) and len(killed) < attempt:
            killed.append(done)
            lab.phones.control.fault(lab.serial, KillAgent())

    lab.phones.control.fault(lab.serial, Throttle(share=0.2, visible=False))  # so slow that a kill meets it
    for attempt in (1, 2):
        lost = run_job(assignment(experiment, lab.serial, attempt), bench, lambda: None, kill)
        assert lost.outcome is Outcome.KILLED and 7 < len(lost.earlier) + len(lost.samples) < total
        eventually(lambda: lab.connection.shell(["ls", folder]).stdout)
    lab.phones.control.clear(lab.serial)
    last = ok(run(bench, assignment(experiment, lab.serial, 3)))
    begun = len(last.earlier)
    assert begun >= killed[1] - 3 and len(last.samples) == total - begun
    assert last.samples[0].epoch == begun - 4 and lost.earlier, "each went on"
    assert lab.connection.shell(["ls", folder]).stdout == b""
    whole = ok(run(bench, assignment(experiment, lab.serial, 4)))
    assert len(whole.samples) == total and not whole.earlier and last.trained == whole.trained, "bit for bit"
    curves = [
        [(each.stage, each.epoch, each.loss, each.error) for each in (*one.earlier, *one.samples)]
        for one in (last, whole)
    ]
    assert curves[0] == curves[1]
    figures = figures_of(last, assignment(experiment, lab.serial).job.cell)
    assert figures.trained is not None and figures.trained.count == total
    assert figures.times is not None and figures.times.count == total - begun, "its own"
    assert lab.connection.shell(["ls", folder]).stdout == b""
