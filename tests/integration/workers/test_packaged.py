"""Engines from packages: real ones, in environments of their own, verified against the farm's reference."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kernels.frontend.load import load_workload
from kernels.frontend.networks.export import to_onnx
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.device import Api
from orchestrator.model.errors import SetupError, Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment import Sampling, Workload
from orchestrator.model.record import Outcome, Record
from workers.devices.install import file_sha256
from workers.devices.workstation import CPU_SERIAL
from workers.engines import Engine, Engines, Host, Work
from workers.engines.agent import AgentRun
from workers.engines.packaged import Environment, PackagedEngine, drive
from workers.engines.packaged.base import IN_USE_S, KEPT
from workers.engines.packaged.program import DrivenProgram

from .conftest import installed
from .test_examples import EXAMPLES, SHARD, ran, raw, right_classes, workload
from .test_run import Runner, assignment, here

__all__ = ["here", "raw", "workload"]

NAMES = ("litert", "mnn", "ncnn", "onnxruntime", "openvino", "torch")
SAMPLES = 4
LENET = Workload(network="lenet")


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    names = [name for name in NAMES if name != "torch" or not why_without_torch()]
    return Engines(Host.alone(installed(tmp_path_factory.mktemp("packaged"), *names)))


@cache
def why_without_torch() -> str:
    """Its file has 190 MB: a test takes it where it is there, or where pip finds it on this machine."""
    torch = next(each for each in Engines(Host.alone(Path("nowhere"))) if each.name == "torch")
    assert isinstance(torch, PackagedEngine)
    here = Environment("torch", torch.environment.requirements, Path(sys.prefix, "engines"))
    pinned = f"torch=={here.packages['torch']}"
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-index", "-d", "{}", pinned]
    if here.is_ready:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run([each.format(folder) for each in argv], capture_output=True, check=False)
    return "" if found.returncode == 0 else f"{pinned} is not on this machine: pip would fetch 190 MB"


def measured(runner: Runner, name: str, workload: Workload = LENET, **axes: Any) -> Record:
    sampling = Sampling(warmup=2, samples=SAMPLES)
    return runner(assignment(CPU_SERIAL, Api.CPU, sampling=sampling, workload=workload, engine=name, **axes))


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_verified_and_timed_by_itself(name: str, here: Runner, engines: Engines) -> None:
    if name == "torch" and (why := why_without_torch()):
        pytest.skip(why)
    record = measured(here, name, threads=1)
    assert record.outcome is Outcome.OK, record.reasons
    assert record.checks and all(check.ok for check in record.checks)
    assert record.runs_on and record.runs_on.threads == 1 and record.runs_on.facts.driver.startswith(name)
    (process,) = record.processes
    (load,) = [phase for phase in record.phases if phase.phase == "load"]
    times = [(each.start_ns, each.start_ns + each.duration_ns) for each in record.samples]
    assert [each.phase for each in record.samples] == ["warmup"] * 2 + ["timed"] * SAMPLES
    assert process.start_ns < times[0][0] and times[-1][1] <= process.end_ns, "the device's own clock"
    assert all(end <= start for (_, end), (start, _) in pairwise(times))
    assert (load.start_ns, load.end_ns) == (times[2][0], times[-1][1]), "the load is the timed samples alone"
    assert {each.step for each in record.setup} >= {"library", "build"}


def test_what_an_engine_cannot_run_fails_in_its_own_words(here: Runner, engines: Engines, tmp_path: Path) -> None:
    """The phone is not blamed, and the next block goes on."""
    record = measured(here, "ncnn", batch=2)
    assert (record.outcome, record.cause) == (Outcome.FAILED, "engine_refused"), record.reasons
    assert "no batch" in record.reasons[0]
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"])], "det",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    record = measured(here, "ncnn", Workload(onnx=str(tmp_path / "m.onnx")))
    assert (record.outcome, record.cause) == (Outcome.FAILED, "engine_refused")
    assert any("layer Det not exists" in line for line in record.evidence), "its own words are kept"
    assert measured(here, "ncnn").outcome is Outcome.OK
    record = measured(here, "onnxruntime", frames=8)
    assert record.outcome is Outcome.FAILED and "runs no `sampling.frames`" in record.reasons[0]


def test_another_number_of_samples_is_the_same_program(here: Runner, engines: Engines, seed: int) -> None:
    rng, records = random.Random(seed), []
    for _ in range(2):
        sampling = Sampling(warmup=rng.randint(1, 4), samples=rng.randint(2, 9))
        given = assignment(CPU_SERIAL, Api.CPU, sampling=sampling, workload=LENET, engine="onnxruntime")
        records.append(record := here(given))
        assert record.outcome is Outcome.OK, record.reasons
        phases = [each.phase for each in record.samples]
        assert phases == ["warmup"] * sampling.warmup + ["timed"] * sampling.samples
    other = measured(here, "onnxruntime", threads=2)
    first, second = (each.provenance.program_hash for each in records)
    assert first == second != other.provenance.program_hash


OUTPUTS, RUN, IMPORT = "zip(self._names, self._outputs", "def run(self) -> None:\n", "import onnxruntime\n"
FIRST = RUN + "        "
FAULTS = {
    "wrong_output": (OUTPUTS, "zip(self._names, [a + 0.01 for a in self._outputs]", "differs"),
    "wrong_output of none": (OUTPUTS, "zip(self._names, [a + float('nan') for a in self._outputs]", "NaN"),
    "unread_output": (RUN, FIRST + "__import__('os')._exit(0)\n", "wrote no result"),
    "library_missing": (IMPORT, IMPORT + "__import__('ctypes').CDLL('libvendor.so')\n", "libvendor"),
    "out_of_memory": (RUN, FIRST + "raise RuntimeError('std::bad_alloc')\n", "bad_alloc"),
    "deadline": (RUN, FIRST + "__import__('time').sleep(60)\n", "not done after"),
}
"""Cause -> words of the driver, others in their place, and what is told."""


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_result_has_its_cause(fault: str, here: Runner, engines: Engines, tmp_path: Path) -> None:
    """Whatever the exit status is; and no device is blamed."""
    old, new, told = FAULTS[fault]
    sampling = Sampling(warmup=0, samples=1, deadline=2 if fault == "deadline" else 60)
    with driven_by(engines.engine("onnxruntime"), tmp_path, old, new):
        record = here(assignment(CPU_SERIAL, Api.CPU, sampling=sampling, workload=LENET, engine="onnxruntime"))
    assert record.cause == fault.split()[0] and told in record.reasons[0], record.reasons
    assert record.outcome in (Outcome.INVALID, Outcome.FAILED)
    assert "`farm engines install onnxruntime`" in record.reasons[-1] or fault != "library_missing"


def test_each_block_predicts_its_part_of_a_set(
    here: Runner, engines: Engines, workload: Workload, raw: np.ndarray, seed: int
) -> None:
    """The same classes as NumPy in double precision; the last part is smaller."""
    name = random.Random(seed).choice([each for each in NAMES if each != "torch"])  # which takes its time to start
    batch = 1 if name == "ncnn" else 2
    records = [ran(here, workload, Api.CPU, block, engine=name, batch=batch, threads=1) for block in range(3)]
    found = [top for record in records if record.predictions for top in record.predictions.top]
    assert [list(top) for top in found] == right_classes(raw), name
    assert [record.samples[0].inferences * batch for record in records] == [SHARD, SHARD, EXAMPLES - 2 * SHARD]
    assert len({record.provenance.program_hash for record in records}) == 1, "another part is the same program"


ELEMENTWISE = (
    *("Abs", "Atan", "Cos", "Erf", "Floor", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg", "Relu", "Round"),
    *("Sigmoid", "Sin", "Tanh"),
)
REDUCED = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")


def drawn_model(rng: random.Random, path: Path) -> Path:
    """Functions of single elements, reductions that are taken away, comparisons, every second row, and margins."""
    nodes, names = [], ["x"]
    constants = [helper.make_tensor("axis", TensorProto.INT64, [1], [rng.choice([1, 2])]),
                 helper.make_tensor("starts", TensorProto.INT64, [1], [rng.randint(0, 2)]),
                 helper.make_tensor("ends", TensorProto.INT64, [1], [100]),
                 helper.make_tensor("steps", TensorProto.INT64, [1], [rng.randint(2, 3)]),
                 helper.make_tensor("pads", TensorProto.INT64, [6], [rng.randint(0, 2) for _ in range(6)])]  # fmt: skip

    def add(op: str, *more: str, **attributes: Any) -> str:
        names.append(f"t{len(nodes)}")
        nodes.append(helper.make_node(op, [*more], [names[-1]], **attributes))
        return names[-1]

    for _ in range(4):
        add(rng.choice(ELEMENTWISE), names[-1])
        given = names[-1]
        add(rng.choice(("Sub", "Add", "Mul", "Max", "Min")), given, add(rng.choice(REDUCED), given, "axis", keepdims=1))
    given = names[-1]
    chosen = add(rng.choice(("Less", "Greater")), given, add("Neg", given))
    add("Where", chosen, given, add("Exp", add("Tanh", given)))
    add("Pad", add("Slice", names[-1], "starts", "ends", "axis", "steps"), "pads")
    graph = helper.make_graph(
        nodes, "drawn", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 7, 9])],
        [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)], constants,
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


def test_what_torch_is_given_is_what_the_model_says(here: Runner, engines: Engines, tmp_path: Path, seed: int) -> None:
    if why := why_without_torch():
        pytest.skip(why)
    record = measured(
        here, "torch", Workload(onnx=str(drawn_model(random.Random(seed), tmp_path / "m.onnx"))), threads=1
    )
    assert record.outcome is Outcome.OK and all(check.ok for check in record.checks), record.reasons


def test_a_users_own_file_is_held_against_the_model(here: Runner, engines: Engines, seed: int) -> None:
    """Whatever engine it is for; a file of another model is wrong, and one that an engine does not read is refused."""
    rng, member = random.Random(seed), here.bench.fleet.member(CPU_SERIAL)
    name = rng.choice([each for each in NAMES if each != "torch" or not why_without_torch()])
    engine = engines.engine(name)
    assert isinstance(engine, PackagedEngine)
    kept = Artifacts(engine.host.state)

    def files_of(workload: Workload) -> dict[str, str]:
        given = assignment(CPU_SERIAL, Api.CPU, workload=workload, engine=name)
        made = engine.prepare(Work(given, member, lambda: None, lambda *_: None))
        assert isinstance(made, DrivenProgram)
        return {f"mine.{each}": kept.put(made.files[each]) for each in engine.reads}

    right, other = files_of(LENET), files_of(LENET.model_copy(update={"seed": rng.randint(2, 99)}))
    record = measured(here, name, model_files=right, threads=1)
    assert record.outcome is Outcome.OK and all(check.ok for check in record.checks), record.reasons
    assert measured(here, name, model_files=other, threads=1).cause == "wrong_output", name
    wide = measured(here, name, Workload(network="cifar10_quick"), model_files=right, threads=1)
    refused = ("engine_refused", "wrong_output", "unread_output", "program_crashed")  # ncnn may end with SIGSEGV
    assert wide.cause in refused, (name, wide.reasons)
    record = measured(here, name, model_files={"mine.txt": next(iter(right.values()))})
    assert record.outcome is Outcome.FAILED and "reads *." in record.reasons[0] and "mine.txt" in record.reasons[0]


@contextmanager
def driven_by(engine: Engine, tmp_path: Path, old: str, new: str) -> Iterator[None]:
    """The engine's driver with other words in one place."""
    assert isinstance(engine, PackagedEngine)
    right = engine.driver
    text = right.read_text()
    assert text.count(old) == 1
    (tmp_path / "driver.py").write_text(text.replace(old, new))
    engine.driver = tmp_path / "driver.py"
    try:
        yield
    finally:
        engine.driver = right


def test_a_fall_back_is_refused(
    here: Runner, engines: Engines, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ONNX Runtime takes the CPU with a warning where a provider is not there; ncnn without a GPU would do the same."""
    absent = random.Random(seed).choice(["CUDA", "CoreML", "NNAPI", "OpenVINO", "QNN", "ROCM", "TensorRT", "XNNPACK"])
    asked = f'PROVIDER = "{absent}ExecutionProvider"'
    with driven_by(engines.engine("onnxruntime"), tmp_path, 'PROVIDER = "CPUExecutionProvider"', asked):
        record = measured(here, "onnxruntime")
    assert (record.outcome, record.cause) == (Outcome.FAILED, "wrong_device"), record.reasons
    assert f"and {absent}ExecutionProvider was asked for" in record.reasons[0]
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, str(tmp_path / "none.json"))
    sampling = Sampling(warmup=0, samples=1)
    record = here(assignment(CPU_SERIAL, Api.VULKAN, sampling=sampling, workload=LENET, engine="ncnn"))
    assert (record.outcome, record.cause) == (Outcome.FAILED, "wrong_device"), record.reasons
    assert "ncnn finds no Vulkan device" in record.reasons[0]


def test_a_converter_has_its_time_and_its_words(
    engines: Engines, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines.engine(random.Random(seed).choice(["litert", "mnn", "ncnn"]))
    assert isinstance(engine, PackagedEngine)
    graph = load_workload(network="lenet", onnx=None, seed=1)
    to_onnx(graph, tmp_path / "model.onnx")
    with monkeypatch.context() as short, pytest.raises(Unsupported, match=r"it was not done after 0\.001 s"):
        short.setattr("workers.engines.packaged.base.CONVERT_S", 0.001)
        engine.files(graph, tmp_path / "model.onnx", tmp_path)
    assert [path.name for path in engine.files(graph, tmp_path / "model.onnx", tmp_path).values()] == [*engine.reads]
    (tmp_path / "raises.py").write_text("raise ValueError('no counterpart')")
    with pytest.raises(Unsupported, match=r"of it: ValueError: no counterpart\n"):
        engine.convert(tmp_path / "raises.py", (), tmp_path, [])
    (tmp_path / "installs.py").write_text("import os, sys\nsys.exit(f'ended with {os.system(\"pip --version\")}')")
    with pytest.raises(Unsupported, match=rf"ended with {127 << 8}\n"):  # a converter changes no packages
        engine.convert(tmp_path / "installs.py", (), tmp_path, [])


def test_what_waits_for_its_device_is_kept(here: Runner, tmp_path: Path, seed: int) -> None:
    """The newest prepared programs are kept, and those that somebody has asked for lately, however many."""
    rng, engine = random.Random(seed), Engines(Host.alone(installed(tmp_path, "onnxruntime"))).engine("onnxruntime")
    folder, now = tmp_path / "cache" / "packaged", time.time()
    ages = sorted(rng.choice((0.1, 0.8, 1.2, 2.0)) * IN_USE_S + place for place in range(KEPT + rng.randint(5, 40)))
    for place, age in enumerate(ages):
        (folder / f"drawn-{place}").mkdir(parents=True)
        os.utime(folder / f"drawn-{place}", (now - age, now - age))
    given = assignment(CPU_SERIAL, Api.CPU, workload=LENET, engine=engine.name)
    engine.prepare(Work(given, here.bench.fleet.member(CPU_SERIAL), lambda: None, lambda *_: None))
    left = {path.name for path in folder.glob("drawn-*")}
    assert left == {f"drawn-{place}" for place, age in enumerate(ages) if place < KEPT - 1 or age < IN_USE_S}


def test_short_runs_of_a_load_are_told_by_means(seed: int) -> None:
    calls, least_ns = [0], random.Random(seed).randint(20_000, 500_000)

    def run() -> None:
        calls[0] += 1

    told, runs = drive.take(run, 3, 5_000_000, least_ns, lambda **_: None), 1
    assert calls[0] == sum(each[2] for each in told)
    for _, mean_ns, count in told:
        assert count == runs
        runs = max(runs, 1 + least_ns // max(1, mean_ns))
    for (start_ns, mean_ns, count), after in pairwise(told):
        assert start_ns + (mean_ns - 1) * count <= after[0]


def test_no_spoilt_result_is_a_figure(engines: Engines, here: Runner, seed: int) -> None:
    """A driver's result, cut or changed at random, gives its samples as they were, or a refusal."""
    rng, member = random.Random(seed), here.bench.fleet.member(CPU_SERIAL)
    given = assignment(
        CPU_SERIAL, Api.CPU, sampling=Sampling(warmup=0, samples=2), workload=LENET, engine="onnxruntime"
    )
    program = engines.engine("onnxruntime").prepare(Work(given, member, lambda: None, lambda *_: None))
    assert isinstance(program, DrivenProgram)
    samples = np.array([[10, 5, 1], [20, 7, 1]], np.int64)
    file = io.BytesIO()
    np.savez(file, warmup=np.zeros((0, 3), np.int64), timed=samples)
    whole, refused = file.getvalue(), 0
    words = json.dumps({"version": "1", "device": "CPU", "threads": 1, "setup": []})
    for _ in range(2000):
        spoilt = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
        del spoilt[rng.choice((len(spoilt), rng.randrange(len(spoilt)))) :]
        line = words if rng.random() < 0.7 else words[: rng.randrange(len(words))]
        run = AgentRun([Line(seq=0, t_ns=0, index=0, phase="timed", stream="stdout", text=line)])
        program.agent, program.unread = run, ""
        program.load(bytes(spoilt))
        program.check()
        refused += bool(program.unread)
        assert program.unread or (np.array_equal(program.samples["timed"], samples) and line == words)
    assert refused > 1000


def test_an_installation_that_broke_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("nothing-of-this-name==1 --hash=sha256:" + "0" * 64)
    made = Environment("own", requirements, tmp_path / "engines")
    assert made.packages == {"nothing-of-this-name": "1"}
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SetupError, match=r"could not be installed: .*nothing-of-this-name"):
        made.install()
    assert made.python.exists() and not made.is_ready
    (tmp_path / "next.txt").write_text("")
    again = Environment("own", tmp_path / "next.txt", tmp_path / "engines")
    assert again.folder != made.folder, "other packages are another environment"
    again.install()
    assert again.is_ready and not made.folder.exists() and again.remove() and not again.remove()


def test_a_further_index_is_asked_for_what_is_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's builds for the CPU lie in an index of their own; the hash is checked there, too."""
    name = "pocketfarm_drawn-1+cpu"
    place = tmp_path / "index" / "pocketfarm-drawn"
    place.mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    wheel = place / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("pocketfarm_drawn.py", "")
        file.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\nName: pocketfarm-drawn\nVersion: 1+cpu\n")
        file.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{name}.dist-info/RECORD", "")
    (place / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "empty").as_uri())
    requirements = tmp_path / "requirements.txt"
    for digest, fails in (("0" * 64, True), (file_sha256(wheel), False)):
        requirements.write_text(f"pocketfarm-drawn==1+cpu --hash=sha256:{digest}")
        made = Environment("own", requirements, tmp_path / "engines", (tmp_path / "index").as_uri())
        with pytest.raises(SetupError, match=r"HASHES|hashes") if fails else nullcontext():
            made.install()
        assert made.is_ready is not fails


def test_every_list_of_packages_has_hashes() -> None:
    for path in sorted(Path(__file__).resolve().parents[3].glob("workers/engines/*/requirements.txt")):
        blocks = path.read_text().replace("\\\n", " ").splitlines()
        assert blocks and all("==" in line and "--hash=sha256:" in line for line in blocks), path
