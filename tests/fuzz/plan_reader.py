"""The agent's plan reader, built from its own sources with AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload
from kernels.options import Limits, Options
from kernels.training import TrainingOptions, compile_training

SOURCES = Path(__file__).parents[2] / "device_agent" / "src"
FILES = (
    *("plan/plan*.cc", "device/facts.cc", "journal/json_object.cc"),
    *("system/json_reader.cc", "system/status.cc", "system/sha256.cc", "system/files.cc"),
)
SANITIZE = ("-std=c++17", "-O1", "-g", "-fno-sanitize-recover=all", "-fsanitize=fuzzer,address,undefined")


def _build(compiler: str, program: Path) -> None:
    sources = [str(Path(__file__).with_suffix(".cc")), *(str(path) for name in FILES for path in SOURCES.glob(name))]
    subprocess.run([compiler, *SANITIZE, f"-I{SOURCES}", *sources, "-o", str(program)], check=True, timeout=600)


def plans() -> list[bytes]:
    """Plans of every backend, and one that trains, as the compiler writes them."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    bundles = [compile_graph(graph, Options(backend=backend), Limits()) for backend in ("opencl", "vulkan", "cpu")]
    batches = load_workload(network="lenet", onnx=None, seed=1, batch=4)
    bundles.append(compile_training(batches, TrainingOptions(samples=64, epochs=2), Options("cpu"), Limits()))
    return [bundle.plan.model_dump_json(indent=1).encode() for bundle in bundles]


def fuzz_plans(corpus: Path, seconds: float) -> int:
    """Number of faults that libFuzzer found (it ends with the first); 0 where there is no clang to build it with."""
    compiler = next((name for n in ("", *range(20, 12, -1)) if (name := shutil.which(f"clang++{n and f'-{n}'}"))), None)
    if compiler is None:
        print("plan: no clang++ (sudo apt-get install clang): not fuzzed")
        return 0
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        program = Path(name, "fuzz-plan")
        _build(compiler, program)
        seeds = Path(name, "seeds")
        seeds.mkdir()
        for number, plan in enumerate(plans()):
            (seeds / str(number)).write_bytes(plan)
        words = Path(__file__).with_name("plan.dict")
        options = [f"-max_total_time={seconds:.0f}", f"-dict={words}", f"-artifact_prefix={corpus}/", "-max_len=65536"]
        done = subprocess.run([program, *options, "-print_final_stats=1", str(seeds), str(corpus)], check=False)
    return int(done.returncode != 0)
