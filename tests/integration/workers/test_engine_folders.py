"""Engines from folders that people bring: kept, refused, run on a virtual phone and on this host.

No tool for phones comes with a package. Its program is here a script that prints what the tool is recorded to print;
all the rest is real: the folder, the farm's files, the phone, the agent, the record.
"""

from __future__ import annotations

import random
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.acts.engine_folder import read_folder
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.energy.windows import inferences_in, phase_window
from orchestrator.model.device import Device
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.errors import ModelFileError, SpecError
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import Cell, Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import cells_of, expand
from tests.engine_outputs import Output, outputs
from tests.engine_outputs import engines as known
from workers.claim import JobCancelled
from workers.devices.admit import host_abi
from workers.devices.workstation import CPU_SERIAL
from workers.engines import Engines, Host, Work
from workers.execution.reread import reread

from .conftest import Wiring
from .test_run import Runner, agents, here, leftovers, there

__all__ = ["here", "there"]

ABI = host_abi()


def took_ms(output: Output) -> float:
    """The time of all its runs together."""
    return sum(output.ms) * (1 if len(output.ms) > 1 else output.asked.samples)


GOOD = {
    name: min(
        (each for each in outputs() if each.engine == name and each.ms and each.asked.backend == "cpu"), key=took_ms
    )
    for name in known()
}
SUFFIXES = {"benchncnn": "Input in0 0 1 in0 0=227 1=227 2=3\n", "onnxruntime_perf_test": ""}


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    return Engines(Host.alone(tmp_path_factory.mktemp("engines")))


def script(text: str) -> str:
    return f"#!/bin/sh\n{text}\n"


def printing(output: Output) -> str:
    """A program that takes its time, and prints what a tool printed."""
    stream = ">&2" if output.stream == "stderr" else ""
    text = f"printf %s {shlex.quote(output.text)} {stream}"
    return script(f'sleep {0.2 + took_ms(output) / 1000}; echo "$@" > $TMPDIR/argv; {text}')


def brought(folder: Path, engine: str, program: str, engines: Engines) -> Artifacts:
    artifacts = Artifacts(engines.engine(engine).host.state)
    bench = folder / "bench"
    (bench / "lib").mkdir(parents=True, exist_ok=True)
    (bench / known()[engine].programs[0]).write_text(program)
    (bench / "lib" / "words").write_text("x")
    EngineBuilds(artifacts).keep(read_folder(bench, engine, ABI, known()[engine].programs, "1.0", artifacts))
    return artifacts


def model_for(folder: Path, engine: str) -> str:
    name = "config.json" if known()[engine].formats == ("config.json",) else f"m{known()[engine].formats[0]}"
    path = folder / "model" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(SUFFIXES.get(engine, "weights"))
    if engine == "onnxruntime_perf_test":
        path = path.with_suffix(".ort")
        path.write_text("weights")
    return f"model/{path.name}"


def experiment(folder: Path, output: Output, **given: Any) -> Experiment:
    asked, own = output.asked, {axis.name for axis in known()[output.engine].axes}
    axes = {f"{output.engine}.{name}": [value] for name, value in asked.axes.items() if name in own}
    axes |= {"threads": [asked.threads]} if asked.threads else {}
    told = {
        "name": "own", "workload": {"model": model_for(folder, output.engine)},
        "matrix": {"engine": [output.engine], "backend": "cpu", "precision": [asked.precision], **axes},
        "sampling": {"samples": asked.samples, "warmup": asked.warmup, "deadline": "20 s"},
        "measure": {"quantities": ["latency", "power"], "power_period": "50 ms"}, **given,
    }  # fmt: skip
    return Experiment.model_validate(told)


def block(
    made: Experiment, runner: Runner, artifacts: Artifacts, folder: Path, serial: str, *check: Callable[[], None]
) -> Record:
    kept = prepare(made, folder, artifacts)
    assert kept.engine and kept.engine.builds
    return runner(assigned(job_of(kept, serial), serial), *check)


def job_of(kept: Experiment, serial: str = CPU_SERIAL, cell: Cell | None = None, **options: Any) -> Job:
    if cell is None:
        (cell,) = cells_of(kept)
    assert cell.build
    cell = cell.model_copy(update={"options": cell.options | options})
    return Job(experiment_id="e1", cell=cell, block=0, candidates=(serial,), sampling=kept.sampling,
               conditions=kept.conditions, measure=kept.measure)  # fmt: skip


def assigned(job: Job, serial: str = CPU_SERIAL) -> Assignment:
    given = {"serial": serial, "host": "testhost", "attempt": 1, "token": 1, "ttl_s": 15.0}
    return Assignment.model_validate({**given, "job_id": job.job_id, "job": job})


@pytest.mark.parametrize("name", GOOD)
def test_a_tool_from_a_folder_becomes_a_record(
    name: str, there: Runner, here: Runner, lab: Wiring, engines: Engines, tmp_path: Path, seed: int
) -> None:
    """Folder and model go to the device by hash, the tool runs there, its figures stand in the record with their
    doubts, and what it printed beside them."""
    output = GOOD[name]
    on_phone = random.Random(f"{seed} {name}").random() < 0.5 or name == "llama.cpp"
    runner, serial = (there, lab.serial) if on_phone else (here, CPU_SERIAL)
    artifacts, made = brought(tmp_path, name, printing(output), engines), experiment(tmp_path, output)
    record = block(made, runner, artifacts, tmp_path, serial)
    assert record.outcome in (Outcome.OK, Outcome.INVALID), record.reasons
    timed = [each for each in record.samples if each.phase == "timed"]
    assert [each.duration_ns / 1e6 for each in record.samples] == pytest.approx(output.ms, rel=1e-6)
    assert len(record.samples) - len(timed) == (output.asked.warmup if name == "executor_runner" else 0)
    assert sum(each.runs for each in timed) == output.asked.samples
    window = phase_window(record, "load")
    assert window and inferences_in(record, window) == output.asked.samples
    assert all(each.prompt + each.token_count == output.asked.axes.get("tokens", 0) for each in timed)
    assert record.runs_on and record.runs_on.facts.driver.startswith(f"{name} ")
    codes = {str(doubt.code).removeprefix(f"{name}.") for doubt in record.doubts}
    assert {"unverified", "placed"} <= codes and ("mean_of_runs" in codes) is (timed[0].mean_of > 1)
    assert ("zero_weights" in codes) is (name == "benchncnn")
    assert "\n".join(line.text for line in record.lines).strip("\n") == output.text.strip("\n")
    assert Record.model_validate_json(record.model_dump_json()) == record and record.provenance.engine == name
    assert leftovers(runner, serial) == [] and not agents(runner.bench.fleet.member(serial).connection.folder)
    again = partial(reread, job=job_of(prepare(made, tmp_path, artifacts), serial), engine=engines.engine(name))
    assert again(record) is None
    for wrong in faulty(record, random.Random(f"{seed} reread {name}")):
        mended = again(wrong)
        assert mended is not None and again(mended) is None and mended.readings[0].samples == wrong.samples
        unlike: dict[str, Any] = {"readings": True, "doubts": True, "samples": {"__all__": {"seq", "t_ns"}}}
        now, then = (each.model_dump(exclude=unlike) for each in (mended, record))
        assert {name: (told, then[name]) for name, told in now.items() if told != then[name]} == {}
        doubts = [{(each.code, each.detail) for each in one.doubts} for one in (mended, record)]
        assert wrong.outcome is Outcome.FAILED or doubts[0] == doubts[1]


def faulty(record: Record, draw: random.Random) -> Iterator[Record]:
    """The same as parsers with a fault would have left it."""
    samples = list(record.samples)
    place, cause = draw.randrange(len(samples)), draw.choice(("unread_output", "wrong_device", "engine_refused"))
    times = {"duration_ns": samples[place].duration_ns + draw.randint(1, 10**9)}
    counts = {"mean_of": samples[place].mean_of + 1, "token_count": samples[place].token_count + 1}
    for update in (times, {name: counts[name] for name in [draw.choice([*counts])]}):
        changed = (*samples[:place], samples[place].model_copy(update=update), *samples[place + 1 :])
        yield record.model_copy(update={"samples": changed})
    failed = {"outcome": Outcome.FAILED, "cause": cause, "reasons": ("no",), "doubts": (), "invalid": ()}
    yield record.model_copy(update={**failed, "samples": ()})


LLAMA = next(each for each in outputs() if each.engine == "llama.cpp" and each.ms)


@pytest.mark.parametrize(
    ("program", "outcome", "cause"),
    [
        ("error while loading shared libraries: libllama.so: cannot open; exit 127", "failed", "library_missing"),
        ("CANNOT LINK EXECUTABLE ./x: cannot locate symbol ggml_init; exit 1", "failed", "wrong_library"),
        ("error: failed to load model m.gguf; exit 1", "failed", "engine_refused"),
        ("error: failed to load model m.gguf; exit 0", "failed", "engine_refused"),
        ("error: invalid parameter for argument: -dev; exit 1", "failed", "engine_refused"),
        ("llama_model_load: no backends are loaded; exit 1", "failed", "wrong_device"),
        ("terminate called after throwing an instance of std::bad_alloc; kill -ABRT $$", "failed", "out_of_memory"),
        ("starting; kill -SEGV $$", "failed", "program_crashed"),
        ("starting; kill -ILL $$", "failed", "program_crashed"),
        ("starting; kill -KILL $$", "killed", "killed"),
        ("starting; sleep 60", "failed", "deadline"),
        ("a table of another version; exit 0", "failed", "unread_output"),
    ],
)
def test_each_failure_has_its_cause_and_remedy(
    program: str, outcome: str, cause: str, here: Runner, engines: Engines, tmp_path: Path
) -> None:
    words, _, rest = program.partition("; ")
    artifacts = brought(tmp_path, "llama.cpp", script(f"echo {shlex.quote(words)} >&2; {rest}"), engines)
    sampling = {"samples": 5, "warmup": 1, "deadline": "3 s"}
    record = block(experiment(tmp_path, LLAMA, sampling=sampling), here, artifacts, tmp_path, CPU_SERIAL)
    assert (record.outcome, record.cause) == (outcome, cause), record.reasons
    assert cause in ("killed", "deadline") or words[:20] in record.reasons[0]
    assert leftovers(here, CPU_SERIAL) == []


def test_a_device_without_a_folder_for_it_is_excluded(
    engines: Engines, lab: Wiring, there: Runner, tmp_path: Path, seed: int
) -> None:
    facts = there.bench.fleet.member(lab.serial).facts.model_copy(update={"abi": "arm64-v8a"})
    device = Device.model_validate({"facts": facts, "state": {"health": "ready"}, "engines": engines.offered(facts)})
    artifacts = brought(tmp_path, "llama.cpp", script("exit 0"), engines)
    made = prepare(experiment(tmp_path, LLAMA), tmp_path, artifacts)
    (excluded,) = expand(made, "e", [device]).exclusions
    assert f"no folder for arm64-v8a (it has {ABI}): `farm engines add llama.cpp" in excluded.reason
    (build,) = EngineBuilds(artifacts).named()["llama.cpp"].values()
    gone = random.Random(seed).choice([build, *EngineBuild.read(artifacts.path(build)).files.values()])
    (artifacts.folder / gone[:2] / gone).unlink()
    with pytest.raises(ModelFileError, match=r"engine llama.cpp for .* (is not in|are gone from)"):
        prepare(experiment(tmp_path, LLAMA), tmp_path, artifacts)
    EngineBuilds(artifacts).remove("llama.cpp")
    (excluded,) = expand(prepare(experiment(tmp_path, LLAMA), tmp_path, artifacts), "e", [device]).exclusions
    assert "no folder for arm64-v8a: `farm engines add" in excluded.reason


def test_a_side_runs_a_build_of_its_own(
    engines: Engines, there: Runner, lab: Wiring, tmp_path: Path, seed: int
) -> None:
    """Both builds of an engine are kept by hash, are two cells, and run on one phone in turns; what cannot be one is
    refused with words."""
    draw = random.Random(f"{seed} sides")
    name = draw.choice([name for name in GOOD if took_ms(GOOD[name]) < 1000])
    output = GOOD[name]
    words = {side: f"{side} {draw.randrange(10**6)}" for side in ("baseline", "candidate")}
    stream = {"stdout": ">&2", "stderr": ""}[output.stream]  # not the one that is read
    programs = {side: printing(output).replace("sleep", f"echo {told} {stream}; sleep") for side, told in words.items()}
    artifacts = brought(tmp_path, name, programs["baseline"], engines)
    sides = {"candidate": {"engine": {name: "next"}}}
    made, program = experiment(tmp_path, GOOD[name], sides=sides), known()[name].programs[0]
    before, place = EngineBuilds(artifacts).named(), tmp_path / "next"

    def refused(words: str) -> None:
        with pytest.raises(ModelFileError, match=words) as told:
            prepare(made, tmp_path, artifacts)
        assert told.value.remedy and f"sides.candidate.engine.{name}: " in str(told.value)

    refused("there is no folder of an ABI")
    (place / ABI).mkdir(parents=True)
    refused("0 files")
    (place / ABI / program).write_text(programs["candidate"])
    kept = prepare(made, tmp_path, artifacts)
    cells = {str(cell.options["side"]): cell for cell in cells_of(kept)}
    old, new = (EngineBuild.read(artifacts.path(cells[side].build[ABI])) for side in ("baseline", "candidate"))
    assert old.program == new.program and old.files[program] != new.files[program]
    assert artifacts.path(new.files[program]).read_text() == (place / ABI / program).read_text()
    assert EngineBuilds(artifacts).named() == before, "experiments of others get the build that was added"
    for side in ("baseline", "candidate", "candidate", "baseline"):
        record = there(assigned(job_of(kept, lab.serial, cells[side]), lab.serial))
        assert record.outcome in (Outcome.OK, Outcome.INVALID), record.reasons
        assert [line.text for line in record.lines if line.text in words.values()] == [words[side]]
        assert [each.duration_ns / 1e6 for each in record.samples] == pytest.approx(output.ms, rel=1e-6)
    EngineBuilds(artifacts).remove(name)
    with pytest.raises(SpecError, match="takes no builds of this engine") as told:
        prepare(made, tmp_path, artifacts)
    assert "farm engines add" in str(told.value.remedy)


def built(folder: Path, name: str, text: str, *flags: str) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = folder / f"{name}.c"
    source.write_text(text)
    subprocess.run([compiler, str(source), "-o", str(folder / name), *flags], check=True, capture_output=True)
    source.unlink()
    return folder / name


def test_a_folder_that_could_not_run_is_refused_with_words(tmp_path: Path) -> None:
    """A real program and a real library: away, misplaced, of another machine, cut off."""
    artifacts, bench = Artifacts(tmp_path / "state"), tmp_path / "bench"

    def refused(words: str, abi: str = ABI) -> None:
        with pytest.raises(ModelFileError, match=words) as told:
            read_folder(bench, "llama.cpp", abi, ("llama-bench",), "", artifacts)
        assert told.value.remedy

    refused("there is no folder")
    bench.mkdir()
    refused("0 files")
    (bench / "notes.txt").write_text("x")
    refused("there is no program 'llama-bench'")
    refused("'arm' is no ABI", "arm")
    (bench / "llama-bench").write_text("no program")
    refused("neither a program")
    built(bench, "libown.so", "int own(void) { return 0; }", "-shared", "-fPIC")
    program = built(bench, "llama-bench", "int own(void); int main(void) { return own(); }", f"-L{bench}", "-lown")
    built_for = read_folder(bench, "llama.cpp", ABI, ("llama-bench",), "b1", artifacts)
    assert built_for.program == "llama-bench" and built_for.bytes > 0 and "libown.so" in built_for.files
    refused("is built for", "arm64-v8a" if ABI != "arm64-v8a" else "x86_64")
    (bench / "lib").mkdir()
    (bench / "libown.so").rename(bench / "lib" / "libown.so")
    assert read_folder(bench, "llama.cpp", ABI, ("llama-bench",), "", artifacts).files.keys() >= {"lib/libown.so"}
    (bench / "other").mkdir()
    (bench / "lib" / "libown.so").rename(bench / "other" / "libown.so")
    refused("it lies at other/libown.so")
    (bench / "other" / "libown.so").unlink()
    refused(r"llama-bench needs libown.so, which neither the folder nor a phone has")
    program.write_bytes(program.read_bytes()[:3000])
    refused("cut off")
    (bench / "a b").touch()
    refused("a name has letters")


def test_a_program_is_its_build_its_model_and_its_words(here: Runner, engines: Engines, tmp_path: Path) -> None:
    """Another host makes the same of the same; how often it runs is no part of it."""

    def hashed(program: str, weights: str = "weights", samples: int = 5, where: str = "", **axes: Any) -> str:
        own = Engines(Host.alone(tmp_path / where)) if where else engines
        artifacts = brought(tmp_path, "llama.cpp", script(program), own)
        made = experiment(tmp_path, LLAMA, sampling={"samples": samples})
        (tmp_path / str(made.workload.model)).write_text(weights)
        job, member = job_of(prepare(made, tmp_path, artifacts), **axes), here.bench.fleet.member(CPU_SERIAL)
        work = Work(assigned(job), member, lambda: None, lambda *_: None)
        return own.engine("llama.cpp").prepare(work).program_hash

    one = hashed("exit 0")
    assert one == hashed("exit 0", samples=9) == hashed("exit 0", where="other")
    others = {hashed("exit 1"), hashed("exit 0", "more"), hashed("exit 0", threads=3)}
    others.add(hashed("exit 0", **{"llama.cpp.kv_type": "q8_0"}))
    assert len(others | {one}) == 5


def test_cancelled_in_mid_run_nothing_goes_on(here: Runner, engines: Engines, tmp_path: Path) -> None:
    artifacts = brought(tmp_path, "llama.cpp", script("sleep 61"), engines)

    def check() -> None:
        if here.phases[-1:] == ["running"]:
            raise JobCancelled("cancelled")

    made = experiment(tmp_path, LLAMA, sampling={"samples": 5, "deadline": "60 s"})
    record = block(made, here, artifacts, tmp_path, CPU_SERIAL, check)
    assert (record.outcome, record.cause) == (Outcome.CANCELLED, "cancelled")
    assert leftovers(here, CPU_SERIAL) == [] and not agents(here.bench.fleet.member(CPU_SERIAL).connection.folder)
