"""Language models through engines from packages: real ones, whose tokens are onnxruntime's and our own engine's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from orchestrator.model.device import Api
from orchestrator.model.experiment import Sampling, Workload
from orchestrator.model.record import Outcome, Record
from tests.unit.kernels.front.decoders import SPELLINGS, Drawn, drawn
from workers.devices.workstation import CPU_SERIAL
from workers.engines import Engines, Host

from .conftest import installed
from .test_language_models import model_tokens
from .test_packaged import driven_by
from .test_run import Runner, assignment, here

__all__ = ["here"]

GENAI = "onnxruntime_genai"


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    return Engines(Host.alone(installed(tmp_path_factory.mktemp("answering"), GENAI)))


def talked(runner: Runner, model: Drawn, engine: str, **text: int) -> Record:
    options = {"engine": engine} if engine == GENAI else {}
    workload, sampling = Workload(language_model=str(model.path), seed=7), Sampling(warmup=1, samples=3)
    return runner(assignment(CPU_SERIAL, Api.CPU, sampling=sampling, workload=workload, threads=1, **options, **text))


def test_two_engines_give_the_same_tokens_each_with_its_time(
    here: Runner, engines: Engines, tmp_path: Path, seed: int
) -> None:
    """Whoever wrote the decoder; the context is no part of an answer's time, and memory is told."""
    rng = np.random.default_rng(seed)
    model = drawn(tmp_path, rng, str(rng.choice(SPELLINGS)))
    text = {
        "context": int(rng.integers(0, 20)),
        "prompt": int(rng.integers(1, 90)),
        "generate": int(rng.integers(2, 9)),
    }
    record, ours = talked(here, model, GENAI, **text), talked(here, model, "pocketfarm", **text)
    assert record.outcome is Outcome.OK, record.reasons
    assert record.runs_on and record.runs_on.facts.driver == f"{GENAI} 0.18.0" and record.runs_on.threads == 1
    (wanted,) = model_tokens(model, 7, ours)
    assert {each.tokens for each in (*record.samples, *ours.samples)} == {wanted}
    assert [each.phase for each in record.samples] == ["warmup", *["timed"] * 3]
    for sample in record.samples:
        assert {name: getattr(sample, name) for name in ("context", "prompt")} | {"generate": len(wanted)} == text
        times = (sample.start_ns, *sample.token_ns)
        assert all(before <= at for before, at in pairwise(times)) and times[-1] == sample.start_ns + sample.duration_ns
    assert record.memory and record.memory.vm_hwm_bytes > 0 and [each.ok for each in record.checks] == [True]


def test_tokens_that_are_not_the_models_are_no_result(
    here: Runner, engines: Engines, tmp_path: Path, seed: int
) -> None:
    """A driver gives other ones; several texts, and a decoder whose ports the engine has no place for, are refused by
    name."""
    rng = np.random.default_rng(seed)
    model = drawn(tmp_path, rng, str(rng.choice(SPELLINGS)))
    other = f"return (int(self._generator.get_next_tokens()[0]) + {int(rng.integers(1, model.words))}) % {model.words}"
    with driven_by(engines.engine(GENAI), tmp_path, "return int(self._generator.get_next_tokens()[0])", other):
        record = talked(here, model, GENAI, prompt=5, generate=3)
    assert (record.outcome, record.cause) == (Outcome.INVALID, "wrong_output"), record.reasons
    assert "of the answer is" in record.reasons[0]
    record = talked(here, model, GENAI, prompt=5, generate=3, batch=2)
    assert record.outcome is Outcome.FAILED and "runs no `workload.batch`" in record.reasons[0], record.reasons
    content = model.path.read_bytes()
    model.path.write_bytes(content.replace(b"values.0.", b"values.7.").replace(b"present.0.", b"present.7."))
    record = talked(here, model, GENAI, prompt=5, generate=3)
    assert record.outcome is Outcome.FAILED and "past_key_values.7.key" in record.reasons[0], record.reasons
    record = talked(here, drawn(tmp_path, rng, "gguf"), GENAI, prompt=5, generate=3)
    assert record.outcome is Outcome.FAILED and "is a GGUF file" in record.reasons[0], record.reasons
