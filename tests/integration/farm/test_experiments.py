"""`farm run`, `watch` and `results` against a scheduler and a host that answers at once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dashboards.answers import answers
from orchestrator.metrics.parts import LedgerPart, RedisPart
from orchestrator.model.live.lease import Assignment
from orchestrator.model.live.waiting import WaitKind
from orchestrator.model.record import Outcome, Record
from orchestrator.system.config import Settings
from tests.integration.orchestrator.hosts import Host, answered
from tests.unit.orchestrator import make
from tests.waiting import eventually

from .conftest import Cli


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two\nworkload: {network: lenet}\nmatrix: {backend: [opencl, vulkan]}\nsampling: {blocks: 2}\n"
    )
    return str(path)


def test_the_last_words_count_every_outcome(host: Host, cli: Cli, spec: str) -> None:
    code, out, _ = cli("run", spec, "--wait", "--json")
    found = json.loads(out)
    nothing = {"invalid": 0, "failed": 0, "lost": 0, "killed": 0, "cancelled": 0}
    assert code == 0
    assert found == {
        "experiment": found["experiment"], "outcomes": {"ok": 2, **nothing}, "timed_out": False,
        "open": {"held": 0, "waiting": 0, "placed": 0, "running": 0}, "waiting": [],
    }  # fmt: skip
    assert json.loads(cli("watch", "latest", "--json")[1]) == found
    assert cli("run", spec, "--wait")[1].endswith(": 2 ok\n")


def test_status_says_when_an_experiment_ends(host: Host, cli: Cli, tmp_path: Path) -> None:
    """The farm really runs: its first blocks end after half a second, the last one when the test lets it."""
    go = threading.Event()

    def slow(assignment: Assignment) -> Record:
        if assignment.job.block < 3:
            time.sleep(0.5)
        else:
            assert go.wait(60)
        return answered(assignment, Outcome.OK)

    host.answer = slow
    path = tmp_path / "slow.yaml"
    path.write_text("name: slow\nworkload: {network: lenet}\nsampling: {blocks: 6}\n")
    submitted_at = time.time()
    assert cli("run", str(path))[0] == 0

    def known() -> tuple[float, dict[str, Any]] | None:
        asked_at = time.time()
        found = json.loads(cli("status", "latest", "--json")[1])
        return (asked_at, found["ends"]) if found["counts"].get("ok") == 3 else None

    asked_at, ends = eventually(known)
    told_at = time.time()
    assert asked_at + 2 * 0.5 <= ends["at"] <= told_at + 3 * (told_at - submitted_at), "one is under way, two wait"
    assert ends["earliest"] <= ends["at"] <= ends["latest"] and ends["unknown"] == ""
    assert "ends at about" in cli("status", "latest")[1]
    go.set()
    assert cli("watch", "latest", "--timeout", "60 s")[0] == 0
    assert json.loads(cli("status", "latest", "--json")[1])["ends"] is None


def test_a_job_that_fails_makes_the_exit_status_1(host: Host, cli: Cli, spec: str) -> None:
    def fail(assignment: Assignment) -> Record:
        record = answered(assignment, Outcome.FAILED, "agent_fault")
        return record.model_copy(update={"reasons": ("the kernel is not there",)})

    host.answer = fail
    code, out, err = cli("run", spec, "--wait", "--json")
    assert code == 1
    assert "`farm status two-" in err
    assert "agent_fault; the kernel is not there" in cli("status", "latest")[1]
    assert json.loads(out)["outcomes"] == {
        "ok": 0, "invalid": 0, "failed": 2, "lost": 0, "killed": 0, "cancelled": 0,
    }  # fmt: skip


def test_why_jobs_wait_is_the_same_everywhere_and_a_wait_has_an_end(
    host: Host, settings: Settings, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.devices = [make.device("A", battery_percent=40.0)]
    spec = tmp_path / "full.yaml"
    spec.write_text(
        "name: full\nworkload: {network: lenet}\nsampling: {blocks: 3}\nconditions: {battery_percent: {min: 70}}\n"
    )
    assert cli("run", str(spec), "--json")[0] == 0
    why = "battery at 40 %, the experiment wants at least 70 %"
    expected = [{"jobs": 3, "kind": "battery", "reason": why, "devices": ["A"]}]
    eventually(lambda: json.loads(cli("status", "full", "--json")[1])["waiting"] == expected)
    assert [row["waiting"] for row in json.loads(cli("status", "--json")[1])] == [expected]
    first, *others = json.loads(cli("status", "full", "--json")[1])["unfinished"]
    assert (len(others), first["state"]) == (2, "waiting") and why in cli("job", first["job"])[1]
    with monkeypatch.context() as few:
        few.setattr(answers, "MOST_TOLD", 1)
        assert json.loads(cli("status", "full", "--json")[1])["unfinished"] == [first]
    assert f"3 wait (battery): A: {why}" in cli("status", "full")[1]
    assert f"full-1: 3 wait (battery): A: {why}" in cli("status")[1].replace(open_id(cli), "full-1")

    for command in (("run", str(spec), "--wait"), ("watch", "full")):
        code, out, err = cli(*command, "--timeout", "1 s", "--json")
        found = json.loads(out)
        assert (code, found["timed_out"], found["waiting"]) == (124, True, expected), err
        assert found["open"]["waiting"] == 3
        assert "not over after 1 s" in err and "farm cancel full-" in " ".join(err.split())
        assert err.count(why) == 2, "while it waits, and when it gives up"
    assert cli("run", str(spec), "--wait", "--timeout", "1 s")[1].endswith(": 3 waiting\n")

    redis = RedisPart(settings)
    families = {family.name: family for family in LedgerPart(settings, redis.reasons)()}
    jobs = {sample.labels["reason"]: sample.value for sample in families["farm_jobs_waiting"].samples}
    assert jobs == {kind.value: 3 if kind is WaitKind.BATTERY else 0 for kind in WaitKind}
    away = {family.name: family for family in LedgerPart(settings, lambda: None)()}["farm_jobs_waiting"]
    assert {s.labels["reason"]: s.value for s in away.samples}[WaitKind.UNKNOWN] == 3


def open_id(cli: Cli) -> str:
    return str(json.loads(cli("status", "latest", "--json")[1])["experiment"])


@pytest.mark.parametrize(
    ("options", "words"), [(["--wait", "--timeout", "5"], "such as `90 s`"), (["--timeout", "5 s"], "--wait")]
)
def test_a_timeout_is_a_time_and_belongs_to_wait(cli: Cli, spec: str, options: list[str], words: str) -> None:
    code, _, err = cli("run", spec, *options)
    assert code == 2 and words in err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("workload: {network: lenett}", "two.yaml:2:21: workload.network: no built-in network is called `lenett`"),
        ("workload: {onnx: none.onnx}", "two.yaml:2:18: workload.onnx: there is no file"),
        ("matrix: {backend: [opencl], algorithm: [dierct]}", "two.yaml:2:40: matrix.algorithm: there is no `dierct`"),
        ("matrix: {fuse: [al]}", "two.yaml:2:17: matrix.fuse[0]: there is no fusion 'al'"),
        ("devices: {where: serial == 'B'}", "two.yaml:2:18: devices.where: no device matches"),
        ("sampling: {blocks: ten}", "two.yaml:2:20: sampling.blocks: expected a whole number, got 'ten'"),
    ],
)
def test_what_is_wrong_with_a_file_has_its_place(host: Host, cli: Cli, spec: str, line: str, told: str) -> None:
    workload = "" if "workload" in line else "workload: {network: lenet}\n"
    Path(spec).write_text(f"name: two\n{line}\n{workload}")
    code, out, _ = cli("run", spec, "--json")
    assert code == 1
    assert told in json.loads(out)["error"]["message"]


def test_raw_results_hold_lost_attempts_too(host: Host, cli: Cli, spec: str) -> None:
    def first_is_lost(assignment: Assignment) -> Record:
        lost = assignment.job.block == 0 and assignment.attempt == 1
        return answered(assignment, Outcome.LOST if lost else Outcome.OK, "host_stopping" if lost else "")

    host.answer = first_is_lost
    assert cli("run", spec, "--wait")[0] == 0
    records = json.loads(cli("results", "latest", "--json", "--raw")[1])["records"]
    assert sorted((each["block"], each["attempt"], each["outcome"]) for each in records) == [
        (0, 1, "lost"), (0, 2, "ok"), (1, 1, "ok"),
    ]  # fmt: skip
    assert "records" not in json.loads(cli("results", "latest", "--json")[1])


def test_results_are_drawn_into_a_file_or_refused(host: Host, cli: Cli, spec: str, tmp_path: Path) -> None:
    assert cli("run", spec, "--wait")[0] == 0
    picture = tmp_path / "new" / "demo.svg"
    picture.parent.mkdir()
    assert cli("results", "two", "--svg", str(picture))[:2] == (0, "")
    assert picture.read_text().startswith("<svg")
    assert [path.name for path in picture.parent.iterdir()] == ["demo.svg"]
    for command in (("report", "two", "-o"), ("results", "two", "--svg")):
        code, out, err = cli(*command, "/proc/nowhere/x", "--json")
        assert code == 1
        assert "/proc/nowhere/x: there is no folder /proc/nowhere" in json.loads(out)["error"]["message"]
        assert "remedy: mkdir -p /proc/nowhere" in err


def test_an_interrupted_watcher_says_that_the_farm_goes_on(
    host: Host, cli: Cli, spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("farm.following.take", interrupt)
    code, out, err = cli("run", spec, "--wait", "--json")
    error = json.loads(out)["error"]
    assert (code, error["cause"]) == (130, "interrupted")
    assert "farm cancel two-" in error["remedy"] and error["remedy"] in err
    assert cli("watch", "--json")[0] == 130
    code, _, err = cli("watch")
    assert code == 0 and "farm cancel two-" in err and "error" not in err


def test_what_comes_to_nothing_is_told_when_it_is_submitted(host: Host, cli: Cli, tmp_path: Path) -> None:
    for most, found in ((11, 1), (12, 0)):
        file = tmp_path / f"most{most}.yaml"
        sampling = f"{{blocks: 2, target_interval: 5 %, max_blocks: {most}}}"
        file.write_text(f"name: most{most}\nworkload: {{network: lenet}}\nsampling: {sampling}\n")
        code, out, err = cli("run", str(file), "--json")
        assert code == 0
        warnings = json.loads(out)["warnings"]
        assert len(warnings) == found and ("warning" in err) == bool(found)
        assert all("takes 12 good blocks" in each and "mend it" in each for each in warnings)
    file.write_text("name: nopower\nworkload: {network: lenet}\nmeasure: {power_source: gauge}\n")
    (warning,) = json.loads(cli("run", str(file), "--json")[1])["warnings"]
    assert "`measure.power_source` has no effect: add `power`" in warning


def test_a_cancelled_experiment_does_not_hide_the_one_before(host: Host, cli: Cli, spec: str) -> None:
    code, first, err = cli("run", spec)
    first = first.strip()
    assert code == 0 and f"farm watch {first}" in err and "2 jobs of 1 configuration on" in err
    assert cli("watch")[0] == 0 and cli("watch", "--all")[0] == 0
    assert cli("cancel", first)[:2] == (1, "")
    over = threading.Event()

    def slow(assignment: Assignment) -> Record:
        over.wait(60)
        return answered(assignment, Outcome.OK)

    host.answer = slow
    try:
        second = cli("run", spec, "--again")[1].strip()
        assert "resumed" in (err := cli("run", spec)[2]) and "2 jobs of 1 configuration on" in err
        assert cli("cancel", "two")[:2] == (0, "cancelled 2 jobs\n")
        code, out, err = cli("results")
        assert code == 0 and second in out
        assert f"{second} was cancelled with 0 jobs ok; before it {first} had 2" in err
        assert "was cancelled" not in cli("results", first)[2]
    finally:
        over.set()
