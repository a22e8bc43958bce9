"""A real llama-bench from a folder, on a virtual phone: POCKETFARM_LLAMA_BENCH names one for this machine.

Debian's package llama.cpp-tools brings one; docs/howto/engines-of-phones.md says how it becomes a folder.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.acts.engine_folder import read_folder
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.experiment import Experiment
from orchestrator.model.record import Outcome, Record
from tests.unit.kernels.front.gguf_models import SAID, write_decoder
from workers.engines import Engines, Host

from .conftest import Wiring
from .test_engine_folders import ABI, assigned, job_of
from .test_run import Runner, agents, here, leftovers, there

__all__ = ["here", "there"]

FOLDER = os.environ.get("POCKETFARM_LLAMA_BENCH", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="POCKETFARM_LLAMA_BENCH names no folder with a llama-bench")


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    return Engines(Host.alone(tmp_path_factory.mktemp("llama")))


@pytest.fixture
def ran(there: Runner, lab: Wiring, engines: Engines, tmp_path: Path) -> Any:
    artifacts = Artifacts(engines.engine("llama.cpp").host.state)
    EngineBuilds(artifacts).keep(read_folder(Path(FOLDER), "llama.cpp", ABI, ("llama-bench",), "", artifacts))

    def run(sampling: dict[str, Any], backend: str = "cpu", threads: int = 1, **axes: Any) -> Record:
        own = {f"llama.cpp.{name}": value for name, value in axes.items()}
        matrix = {"engine": "llama.cpp", "backend": backend, "threads": threads, **own}
        given = {"name": "l", "workload": {"model": "m.gguf"}, "matrix": matrix, "sampling": sampling}
        kept = prepare(Experiment.model_validate(given), tmp_path, artifacts)
        return there(assigned(job_of(kept, lab.serial), lab.serial))

    return run


def test_its_samples_are_the_records(
    ran: Any, there: Runner, lab: Wiring, engines: Engines, tmp_path: Path, seed: int
) -> None:
    """Each architecture that its writer knows, whatever the axes; a sample is what the tool told of it."""
    draw = random.Random(seed)
    kinds = {axis.name: axis.words for axis in engines.engine("llama.cpp").axes}["kv_type"]
    for architecture in draw.sample([*SAID], 3):
        write_decoder(tmp_path / "m.gguf", architecture, np.random.default_rng(draw.randrange(2**32)))
        axes = {
            "stage": draw.choice(("prefill", "decode")), "tokens": draw.randint(1, 12),
            "context_tokens": draw.choice((0, 9)),
            "kv_type": draw.choice(kinds if architecture == "llama" else ("f16",)),
            "flash_attention": draw.choice(("auto", "on")),
        }  # fmt: skip
        record = ran({"samples": draw.randint(1, 4), "warmup": draw.randint(0, 1)}, threads=draw.randint(1, 2), **axes)
        assert record.outcome in (Outcome.OK, Outcome.INVALID), (architecture, axes, record.reasons)
        (told,) = [json.loads(line.text) for line in record.lines if line.stream == "stdout"]
        assert [each.duration_ns for each in record.samples] == told["samples_ns"]
        assert all(each.prompt + each.token_count == axes["tokens"] for each in record.samples)
        assert record.runs_on and record.runs_on.facts.driver.startswith(f"llama.cpp {told['build_number']} (")
        assert record.processes[0].start_ns <= record.samples[0].start_ns
    assert leftovers(there, lab.serial) == [] and not agents(there.bench.fleet.member(lab.serial).connection.folder)


@pytest.mark.parametrize(
    ("cause", "backend", "axes"),
    [
        ("engine_refused", "cpu", {"tokens": 2}),
        ("out_of_memory", "cpu", {"context_tokens": 1 << 24, "kv_type": "f16"}),
        ("wrong_device", "vulkan", {"tokens": 2}),
        ("unsupported", "cpu", {"kv_type": "q8_0", "flash_attention": "off"}),
    ],
)
def test_its_failures_have_their_causes(ran: Any, tmp_path: Path, cause: str, backend: str, axes: Any) -> None:
    write_decoder(tmp_path / "m.gguf", "llama", np.random.default_rng(1), layers=24)
    if cause == "engine_refused":
        (tmp_path / "m.gguf").write_bytes((tmp_path / "m.gguf").read_bytes()[:9000])
    record = ran({"samples": 1, "warmup": 0, "deadline": "60 s"}, backend, **axes)
    assert (record.outcome, record.cause) == (Outcome.FAILED, cause), record.reasons
