"""llama.cpp's own arm64 libraries below the agent of arm64, both under qemu: POCKETFARM_LLAMA_ARM64 names their folder.

docs/howto/engines-of-phones.md says where such libraries come from.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.frontend.gguf import load_gguf
from kernels.reference import evaluate
from orchestrator.acts.engine_folder import read_folder
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.device import Api, Precision
from tests.engine_outputs import engines
from tests.servers import required
from tests.unit.kernels.front.gguf_models import SAID, write_decoder
from workers.engines.agent import AgentRun, ProgramFailed
from workers.engines.agent.program_failure import raise_for_process
from workers.engines.folder.program import REFUSES
from workers.engines.folder.tool import Asked

from .driver import Agent
from .test_exec import run
from .test_phone_builds import BUILD_S, OWN, ROOT, built, monkeypatch_module, phone_agent

__all__ = ["built", "monkeypatch_module", "phone_agent"]

FOLDER = os.environ.get("POCKETFARM_LLAMA_ARM64", "")
ABI = "arm64-v8a"
FLAGS = "-target aarch64-linux-musl -O1 -fPIC -fno-stack-protector -fno-sanitize=all -c"
LINKED = "-pie -dynamic-linker /system/bin/linker64 -z max-page-size=16384 --unresolved-symbols=ignore-all"

pytestmark = [
    *(pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(BUILD_S)),
    pytest.mark.skipif(not FOLDER, reason="POCKETFARM_LLAMA_ARM64 names no folder with llama.cpp for arm64"),
]


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """A copy of the folder, as `farm engines add` takes it. Where it has no llama-bench, one of ours is linked to its
    libraries for Android: llama.h needs of a C library's headers what all of them agree on."""
    folder = tmp_path / "llama"
    shutil.copytree(FOLDER, folder)
    if not (folder / "llama-bench").exists():
        zig, objects = [sys.executable, "-m", "ziglang"], []
        for name in ("bionic_start", "llama_bench", "llama_work"):
            objects.append(str(tmp_path / f"{name}.o"))
            source = ROOT / "tests" / "data" / f"{name}.c"
            subprocess.run([*zig, "cc", *FLAGS.split(), f"-I{folder}/include", source, "-o", objects[-1]], check=True)
        files = [*objects, folder / "libllama.so", folder / "libggml.so", "-o", folder / "llama-bench"]
        subprocess.run([*zig, "ld.lld", *LINKED.split(), *files], check=True)
    program = read_folder(folder, "llama.cpp", ABI, ("llama-bench",), "", Artifacts(tmp_path / "state")).program
    system = os.environ.get(OWN) or folder
    (folder / "run").write_text(f'#!/bin/sh\nexec {required("qemu-aarch64")} -L {system} ./{program} "$@"\n')
    (folder / "run").chmod(0o755)
    return folder


@pytest.mark.parametrize("phone_agent", [ABI, f"{ABI} {OWN}"], indirect=True)
def test_is_run_read_and_refused(phone_agent: Agent, llama: Path, tmp_path: Path, seed: int) -> None:
    """Whatever the decoder, our reader takes what a llama-bench tells over its libraries, and their logits are ours; a
    model cut off and a library that is away have their causes by the words of llama.cpp and of the phone's linker."""
    draw, tool, model = random.Random(seed), engines()["llama.cpp"], tmp_path / "m.gguf"
    for architecture in draw.sample([*SAID], 2):
        write_decoder(model, architecture, np.random.default_rng(draw.randrange(2**32)))
        axes = {axis.name: axis.default for axis in tool.axes} | {"threads": draw.randint(1, 2)}
        axes |= {"stage": draw.choice(("prefill", "decode")), "tokens": draw.randint(1, 12)}
        asked = Asked(str(model), Api.CPU, Precision.FP32, draw.randint(1, 4), 1, axes)
        ended = run(phone_agent, "./run", *tool.arguments(asked), folder=llama)
        assert ended.code == 0, ended.events
        told, (process,) = tool.read(ended.all("line"), asked), ended.all("process")
        assert len(told.samples) == asked.samples and told.threads == asked.threads and told.version
        assert 0 < sum(each.duration_ns for each in told.samples) < process.end_ns - process.start_ns
        assert process.peak_rss_bytes > model.stat().st_size
        logits = [line.text for line in ended.all("line") if line.text.startswith("logits:")]
        if (llama / "include").exists():
            found = np.array(logits[0].split()[1:], float)
            wanted = logits_of(model, (7 * np.arange(12) + 3) % len(found))
            np.testing.assert_allclose(found, wanted, atol=1e-2 * np.abs(wanted).max())

    def fails(cause: str) -> None:
        ended = run(phone_agent, "./run", *tool.arguments(replace(asked, samples=1)), folder=llama)
        with pytest.raises(ProgramFailed) as told:
            raise_for_process(AgentRun(ended.events), "llama-bench", "p", REFUSES)
        assert (told.value.cause, bool(told.value.remedy)) == (cause, True), told.value

    model.write_bytes(model.read_bytes()[: draw.randrange(100, 9000)])
    fails("engine_refused")
    library = draw.choice(sorted(path for path in llama.rglob("libggml*.so*") if "cpu" not in path.name))
    library.unlink()
    fails("library_missing")


def logits_of(model: Path, tokens: np.ndarray) -> np.ndarray:
    """Return those behind the last token, by the reference."""
    graph = load_gguf(model, sizes={"tokens": len(tokens)})
    cache = {name: np.zeros(graph.shapes[name], np.float32) for name in graph.inputs[2:]}
    return evaluate(graph, {"tokens": tokens[None], "position": np.zeros(1, np.int64), **cache})["logits"][0, -1]
