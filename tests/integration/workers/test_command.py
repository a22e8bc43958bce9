"""Programs of one's own on a virtual phone and on this host: their files, their samples, their failures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment import Conditions, Experiment
from orchestrator.model.job import Job
from orchestrator.model.live.lease import Assignment
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import cells_of
from workers.devices.workstation import CPU_SERIAL
from workers.engines import Engines, Host
from workers.execution.reread import reread

from .conftest import Wiring
from .test_run import Runner, agents, here, leftovers, there

__all__ = ["here", "there"]

RESULT = {"regex": "took (?P<sample>[0-9]+) us", "unit": "us"}
BENCH = 'i=0; while [ $i -lt ${2:-1} ]; do sleep 0.05; echo "took 4$1$i us"; i=$((i+1)); done; cat lib/words >&2'
ALL_AT_ONCE = 'sleep 0.3; for i in 0 1 2 3 4; do echo "took 900$i us"; done'


LACKS = "echo error while loading shared libraries; exit 9"
SCRIPTS = {"own": BENCH, "dies": "kill -$1 $$", "burst": ALL_AT_ONCE, "lacks": LACKS}


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Engines:
    return Engines(Host.alone(tmp_path_factory.mktemp("engines")))


def experiment(folder: Path, command: str, **given: Any) -> Experiment:
    bench = folder / "bench"
    (bench / "lib").mkdir(parents=True, exist_ok=True)
    (bench / "lib" / "words").write_text("loaded\n")
    for name, text in SCRIPTS.items():
        (bench / name).write_text(f"#!/bin/sh\n{text}\n")
    (bench / "foreign").write_bytes(b"\x7fELF" + bytes(60))
    told: dict[str, Any] = {"name": "own", "workload": {"command": command, "files": "bench"}, **given}
    return Experiment.model_validate(told)


def blocks(made: Experiment, runner: Runner, engines: Engines, folder: Path, serial: str) -> list[Record]:
    """The record of one block of each cell."""
    kept = prepare(made, folder, Artifacts(engines.engine("command").host.state))
    jobs = [
        Job(experiment_id="e1", cell=cell, block=0, candidates=(serial,), sampling=kept.sampling,
            conditions=Conditions(), measure=kept.measure)
        for cell in cells_of(kept)
    ]  # fmt: skip
    given = {"serial": serial, "host": "testhost", "attempt": 1, "token": 1, "ttl_s": 15.0}
    return [runner(Assignment.model_validate({**given, "job_id": job.job_id, "job": job})) for job in jobs]


@pytest.mark.parametrize("place", ["phone", "host"])
def test_samples_are_what_the_program_printed(
    place: str, there: Runner, here: Runner, lab: Wiring, engines: Engines, tmp_path: Path
) -> None:
    runner, serial = (there, lab.serial) if place == "phone" else (here, CPU_SERIAL)
    matrix, sampling = {"threads": [1, 2]}, {"samples": 4, "idle": "200 ms"}
    power = {"quantities": ["latency", "memory", "power"], "power_period": "50 ms"}
    once = experiment(
        tmp_path,
        "./own {threads} {samples}",
        matrix=matrix,
        sampling=sampling,
        engine={"result": RESULT},
        measure=power,
    )
    for threads, record in enumerate(blocks(once, runner, engines, tmp_path, serial), 1):
        assert record.outcome in (Outcome.OK, Outcome.INVALID), record.reasons
        wanted = [1000 * int(f"4{threads}{i}") for i in range(4)]
        assert [sample.duration_ns for sample in record.samples] == wanted and record.provenance.engine == "command"
        assert [line.text for line in record.lines if line.stream == "stderr"] == ["loaded"]
        (process,), (load,) = record.processes, [each for each in record.phases if each.phase == "load"]
        assert process.start_ns < load.start_ns and load.end_ns <= process.end_ns, "the load begins with the samples"
        assert record.memory and record.memory.device_peak_bytes == process.peak_rss_bytes > 0
        codes = {str(doubt.code) for doubt in record.doubts}
        assert "command.unchecked" in codes and "command.whole_process" not in codes
    each = experiment(tmp_path, "./own 7", sampling={"samples": 3, "warmup": 1}, engine={"result": RESULT})
    (record,) = blocks(each, runner, engines, tmp_path, serial)
    assert [(sample.phase, sample.duration_ns) for sample in record.samples] == [("warmup", 470_000)] + [
        ("timed", 470_000)
    ] * 3
    (whole,) = blocks(
        experiment(tmp_path, "./own 7", sampling={"samples": 2, "warmup": 0}), runner, engines, tmp_path, serial
    )
    assert all(sample.duration_ns > 50e6 for sample in whole.samples) and len(whole.samples) == 2
    assert leftovers(runner, serial) == [] and not agents(runner.bench.fleet.member(serial).connection.folder)


def test_samples_that_come_all_at_once_have_no_power_of_their_own(
    here: Runner, engines: Engines, tmp_path: Path
) -> None:
    measure = {"quantities": ["latency", "power"]}
    made = experiment(
        tmp_path, "./burst {samples}", sampling={"samples": 5}, engine={"result": RESULT}, measure=measure
    )
    (record,) = blocks(made, here, engines, tmp_path, CPU_SERIAL)
    assert len(record.samples) == 5 and "command.whole_process" in {str(doubt.code) for doubt in record.doubts}
    ends = [sample.start_ns + sample.duration_ns for sample in record.samples]
    assert ends == sorted(ends) and ends[-1] <= record.processes[0].end_ns


def test_two_builds_run_side_by_side(here: Runner, engines: Engines, tmp_path: Path, seed: int) -> None:
    """Each side runs its own folder's program, under the same name."""
    next_us = Random(seed).randint(100, 999)
    asked = experiment(tmp_path, "./own 7", sampling={"samples": 2, "warmup": 0}, engine={"result": RESULT},
                       sides={"candidate": {"engine": {"command": "next"}}})  # fmt: skip
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "own").write_text(f"#!/bin/sh\necho took {next_us} us\n")
    records = blocks(asked, here, engines, tmp_path, CPU_SERIAL)
    told = [[sample.duration_ns for sample in record.samples] for record in records]
    assert told == [[470_000] * 2, [1000 * next_us] * 2]
    assert len({record.provenance.program_hash for record in records}) == 2


@pytest.mark.parametrize(
    ("command", "outcome", "cause"),
    [
        ("./nothing", Outcome.FAILED, "no_program"),
        ("./foreign", Outcome.FAILED, "wrong_abi"),
        ("./lacks", Outcome.FAILED, "library_missing"),
        ("./dies SEGV", Outcome.FAILED, "program_crashed"),
        ("./dies KILL", Outcome.KILLED, "killed"),
        ("sh -c 'exit 3'", Outcome.FAILED, "program_failed"),
        ("sh -c 'echo took 5 ms'", Outcome.FAILED, "unread_output"),
        ("sh -c 'echo took 5 us; echo took 5 us'", Outcome.FAILED, "unread_output"),
        ("sh -c 'echo took 900000000 us'", Outcome.FAILED, "unread_output"),
        ("sh -c 'sleep 30'", Outcome.FAILED, "deadline"),
    ],
)
def test_each_failure_has_its_cause(
    command: str, outcome: Outcome, cause: str, here: Runner, engines: Engines, tmp_path: Path
) -> None:
    made = experiment(tmp_path, command, sampling={"samples": 1, "deadline": "2 s"}, engine={"result": RESULT})
    (record,) = blocks(made, here, engines, tmp_path, CPU_SERIAL)
    assert (record.outcome, record.cause) == (outcome, cause), record.reasons
    assert cause in ("killed", "unread_output", "deadline") or command.split()[0] in record.reasons[0]
    assert ("it tells of 900 s, and ran for" in record.reasons[0]) is ("900000000" in command)
    assert leftovers(here, CPU_SERIAL) == []


def test_names_that_no_phone_can_have_and_braces_with_more_than_a_name_are_refused(tmp_path: Path) -> None:
    for name in ("a b", "a\nb", "ä", "lib/c d"):
        made = experiment(tmp_path, "./own 1")
        (wrong := tmp_path / "bench" / name).touch()
        with pytest.raises(ModelFileError, match="a name has letters"):
            prepare(made, tmp_path, Artifacts(tmp_path / "state"))
        wrong.unlink()
    for braces in ("{samples!r}", "{samples:>{x}}", "{samples.real}", "{0}"):
        with pytest.raises(ValueError, match="braces"):
            experiment(tmp_path, f"./own {braces}", engine={"result": RESULT})


def test_what_an_older_parser_made_of_an_output_is_mended(
    here: Runner, engines: Engines, tmp_path: Path, seed: int
) -> None:
    """Whatever it told, the output tells what it tells today; the earlier reading stays. A cut output is left alone."""
    random, power = Random(seed), {"quantities": ["latency", "power"], "power_period": "50 ms"}
    made = [
        experiment(tmp_path, "./own 1 {samples}", sampling={"samples": 4}, engine={"result": RESULT}, measure=power),
        experiment(tmp_path, "./burst {samples}", sampling={"samples": 5}, engine={"result": RESULT}, measure=power),
        experiment(tmp_path, "./own 7", sampling={"samples": 3, "warmup": 1}, engine={"result": RESULT}),
    ]
    for each in made:
        (record,) = blocks(each, here, engines, tmp_path, CPU_SERIAL)
        (cell,) = cells_of(prepare(each, tmp_path, Artifacts(engines.engine("command").host.state)))
        job = Job(experiment_id="e1", cell=cell, block=0, candidates=(CPU_SERIAL,), sampling=each.sampling,
                  conditions=Conditions(), measure=each.measure)  # fmt: skip
        again = partial(reread, job=job, engine=engines.engine("command"))
        assert record.outcome in (Outcome.OK, Outcome.INVALID) and again(record) is None
        for _ in range(10):
            wrong = older(record, random)
            mended = again(wrong)
            assert mended is not None and again(mended) is None
            (before,) = mended.readings
            assert (before.samples, before.outcome, before.doubts) == (wrong.samples, wrong.outcome, wrong.doubts)
            told = [(each.phase, each.index, each.start_ns, each.duration_ns) for each in record.samples]
            assert [(each.phase, each.index, each.start_ns, each.duration_ns) for each in mended.samples] == told
            assert [each.code for each in mended.doubts] == [each.code for each in record.doubts]
            unlike = {"readings", "samples"} | ({"doubts"} if wrong.outcome is Outcome.FAILED else set())
            now, then = (each.model_dump(exclude=unlike) for each in (mended, record))
            assert {name: (told, then[name]) for name, told in now.items() if told != then[name]} == {}
            (run, *_) = wrong.processes
            cut = (run.model_copy(update={"dropped_bytes": 1}), *wrong.processes[1:])
            assert again(wrong.model_copy(update={"processes": cut})) is None
            assert again(wrong.model_copy(update={"outcome": Outcome.KILLED, "cause": "killed"})) is None
        place = random.choice([n for n, line in enumerate(record.lines) if line.stream == "stdout"])
        lines = [line.model_copy(update={"text": "took 5 ms"}) if n == place else line
                 for n, line in enumerate(record.lines)]  # fmt: skip
        refused = again(record.model_copy(update={"lines": tuple(lines)}))
        assert refused is not None and (refused.outcome, refused.cause) == (Outcome.FAILED, "unread_output")
        assert refused.readings[0].samples == record.samples and not refused.doubts


def older(record: Record, random: Random) -> Record:
    """The same as a parser with a fault would have left it: samples that are none, or lacking, or no result."""
    samples = list(record.samples)
    kind = random.choice(("wrong", "lacking", "refused"))
    if kind == "refused":
        update: dict[str, Any] = {
            "outcome": Outcome.FAILED,
            "cause": "unread_output",
            "reasons": ("no",),
            "invalid": (),
        }
        return record.model_copy(update={**update, "samples": (), "doubts": ()})
    place = random.randrange(len(samples))
    if kind == "lacking":
        del samples[place]
    else:
        wrong = samples[place].duration_ns * random.choice((2, 1000))
        samples[place] = samples[place].model_copy(update={"duration_ns": wrong})
    return record.model_copy(update={"samples": tuple(samples)})
