"""Every command has help with an example, speaks JSON alone when asked, and says what is wrong without a traceback."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
import typer
import yaml
from pydantic import SecretStr

from farm.cli import output
from farm.cli.app import COMMANDS as BY_PART
from farm.cli.app import application
from farm.cli.demo import _all_measured
from farm.endpoints import Endpoints, StateLock, write
from orchestrator.ledger import Ledger
from orchestrator.ledger.upkeep.copies import JUMP
from orchestrator.system.config import Settings
from tests.servers import required
from tests.test_remedies import COMMANDS
from tests.unit.orchestrator import make

from .conftest import Run


@pytest.mark.parametrize("names", [names for modules in BY_PART.values() for names in modules.values()])
def test_a_command_is_loaded_with_those_of_its_module_alone(names: str) -> None:
    for command in names.split():
        found = typer.main.get_command(application(command))
        assert set(found.commands) == set(names.split())  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_has_an_example_and_the_common_options(farm: Run, command: str) -> None:
    code, out, err = farm(command, "--help")
    assert code == 0
    assert f"farm {command}" in out
    assert "Example:" in out
    assert "--json" in out
    if command not in ("networks", "schema", "energy", "dataset", "changes", "quantize", "explain", "login", "logout"):
        assert "--state" in out
    assert err == ""


NEEDS_FARM = [("devices",), ("watch",), ("run", "SPEC"), ("plan", "--network", "lenet", "-o", "x", "--device", "a")]


@pytest.mark.parametrize("command", NEEDS_FARM)
def test_without_a_farm_the_remedy_is_farm_up(farm: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    spec = tmp_path / "x.yaml"
    spec.write_text("name: x\nworkload: {network: lenet}\n")
    arguments = [str(spec) if word == "SPEC" else word for word in command]
    code, out, err = farm(*arguments, "--json")
    assert code == 1
    error = json.loads(out)["error"]
    assert "farm up" in error["remedy"]
    assert "no farm runs" in err
    assert "Traceback" not in err


def test_a_farm_that_starts_is_told_from_none(farm: Run, tmp_path: Path) -> None:
    lock = StateLock(tmp_path / ".farm")
    _, _, err = farm("devices")
    assert "is starting" in err and "no farm runs" not in err
    found = Endpoints(
        pid=1, redis_url="", redis_password=SecretStr(""), adb_port=0, host="b", exporter_port=0, joined="redis://a"
    )
    write(tmp_path / ".farm", found)
    told = [farm(*command)[2] for command in (("devices",), ("status",), ("host", "list"), ("web",))]
    lock.close()
    assert all("belongs to a host of the farm at redis://a" in err for err in told)


def test_wrong_usage_names_the_help_of_its_command(farm: Run) -> None:
    _, _, err = farm("ledger", "prune", "--older-than", "soon")
    assert "`farm ledger prune --help`" in err
    _, _, err = farm("plan", "--backend", "cuda")
    assert "'cuda' is not one of" in err and "Value error" not in err


def test_without_json_standard_output_stays_empty_on_an_error(farm: Run) -> None:
    code, out, err = farm("devices")
    assert (code, out) == (1, "")
    assert "remedy:" in err


@pytest.fixture
def ledger(farm: Run) -> None:
    """An empty one in the folder of the test."""
    Ledger(Settings().ledger).close()


@pytest.mark.usefixtures("ledger")
@pytest.mark.parametrize("command", ["results", "report", "status", "cancel", "retry"])
def test_an_unknown_experiment_is_an_error(farm: Run, command: str) -> None:
    code, out, _ = farm(command, "no-such", "--json")
    assert code == 1
    assert "no-such" in json.loads(out)["error"]["message"]


@pytest.mark.usefixtures("ledger")
def test_an_empty_ledger_has_no_experiments(farm: Run) -> None:
    assert farm("status", "--json")[:2] == (0, "[]\n")
    assert farm("status")[0] == 0
    code, out, _ = farm("results", "--json")
    error = json.loads(out)["error"]
    assert (code, error["type"], error["cause"]) == (1, "UnknownName", "unknown_name")
    assert "'latest'" in error["message"]


OF_A_STATE = [
    ("rank",), ("status",), ("results",), ("report",), ("watch",), ("export",), ("agreement",),
    ("best", "--axis", "backend"),
    ("cancel", "latest"), ("down",), ("devices",), ("devices", "A"), ("release", "A"), ("restore",), ("tune", "show"),
    ("tune", "export", "x.json"), ("records",), ("records", "replay"), ("records", "drop", "A"),
    ("records", "show", "A"), ("retry", "latest"), ("ledger", "recompute"),
    ("ledger", "check"), ("ledger", "backup", "copy"),
    ("ledger", "archive", "a.parquet"), ("ledger", "prune"),
]  # fmt: skip


@pytest.mark.parametrize("command", OF_A_STATE, ids=" ".join)
def test_a_wrong_state_folder_is_told_and_not_made(farm: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    code, out, _ = farm(*command, "--state", "no where", "--json")
    error = json.loads(out)["error"]
    assert code == 1 and error["cause"] in ("setup", "service_down")
    assert "no where" in error["message"] and "`farm up --state 'no where'`" in error["remedy"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("ledger")
def test_figures_are_recomputed(farm: Run, tmp_path: Path) -> None:
    job = make.job()
    with Ledger(Settings(state=tmp_path / ".farm").ledger) as ledger:
        ledger.submit("first-1", make.many(1), [job])
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
        assert begun is not None
        ledger.keep(make.record(job, attempt=1, token=begun.token))
    none = {"experiments": 1, "looked_at": 0, "changed": 0, "faulty": 0, "readings": []}
    assert json.loads(farm("ledger", "recompute", "--json")[1]) == none
    file = tmp_path / ".farm" / "ledger.sqlite"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE figures SET version = 0, body = x'00'")
    code, out, _ = farm("ledger", "recompute", "latest")
    assert (code, out) == (0, "1 row of 1 experiment made anew: 1 changed, 0 without figures\n")
    assert json.loads(farm("ledger", "recompute", "--all", "--json")[1]) == {**none, "looked_at": 1}
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE templates SET body = x'00'")
    code, out, _ = farm("ledger", "recompute", "first-1", "--all", "--json")
    assert (code, json.loads(out)) == (1, {**none, "looked_at": 1, "faulty": 1})


@pytest.mark.usefixtures("ledger")
def test_a_ledger_is_checked_copied_and_put_back(farm: Run, tmp_path: Path) -> None:
    with Ledger(Settings(state=tmp_path / ".farm").ledger) as ledger:
        ledger.submit("first-1", make.many(1), [make.job()])
    assert farm("ledger", "backup", "copy")[:2] == (0, f"copy, {(tmp_path / 'copy').stat().st_size} bytes, is whole: "
                                                    "1 experiment, 1 job, 0 records\n")  # fmt: skip
    assert "is there already" in farm("ledger", "backup", "copy")[2]
    assert json.loads(farm("ledger", "backup", "copy", "--force", "--json")[1])["jobs"] == 1
    assert json.loads(farm("ledger", "check", "--json")[1])["faults"] == []
    with closing(sqlite3.connect(tmp_path / ".farm" / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE experiments SET spec = '{'")
    code, out, _ = farm("ledger", "check")
    assert code == 1 and "experiments first-1: cannot be read" in out and "remedy: `farm ledger restore FILE`" in out
    lock = StateLock(tmp_path / ".farm")
    code, _, err = farm("ledger", "restore", "copy")
    lock.close()
    assert code == 1 and "a farm already runs" in err
    done = json.loads(farm("ledger", "restore", "copy", "--json")[1])
    assert done["token"] == JUMP and Path(done["before"]).exists()
    assert farm("ledger", "check")[0] == 0 and "kept" in farm("ledger", "restore", "copy")[1]


@pytest.mark.usefixtures("ledger")
def test_dead_records_are_listed_shown_replayed_and_dropped(farm: Run, tmp_path: Path) -> None:
    assert farm("records", "--json")[:2] == (0, "[]\n")
    assert farm("records")[1] == "no record is set aside\n"
    job, body = make.job(), b"\xff no text"
    with Ledger(Settings(state=tmp_path / ".farm").ledger) as ledger:
        ledger.submit("first-1", make.many(1), [job])
        begun = ledger.begin_attempt(job.job_id, "A", "lab", 15.0)
        assert begun is not None
        good = make.record(job, attempt=1, token=begun.token).model_dump_json().encode()
        bad_id = ledger.dead.set_aside(body, "it is no [record]", host="lab", name="x:1")
        good_id = ledger.dead.set_aside(good, "an earlier version could not read it", host="lab")
    listed = json.loads(farm("records", "--json")[1])
    assert {each["id"] for each in listed} == {bad_id, good_id}
    assert "it is no [record]" in farm("records")[1] and "x:1" in farm("records")[1]
    assert json.loads(farm("records", "show", bad_id, "--json")[1])["reason"] == "it is no [record]"
    assert farm("records", "show", good_id)[1].encode() == good
    code, out, _ = farm("records", "replay", "--json")
    assert (code, json.loads(out)["replayed"][good_id], json.loads(out)["left"]) == (1, "new", [bad_id])
    assert farm("records", "drop", bad_id, "--json")[0] == 0
    assert farm("records", "--json")[1] == "[]\n"
    code, out, _ = farm("records", "drop", bad_id, "--json")
    assert code == 1 and bad_id in json.loads(out)["error"]["message"]


def test_restore_of_a_device_on_which_nothing_is_left_is_an_error(farm: Run, tmp_path: Path) -> None:
    (tmp_path / ".farm").mkdir()
    code, out, _ = farm("restore", "NOPE", "--json")
    assert code == 1
    assert "NOPE; nothing is left on any device" in json.loads(out)["error"]["message"]
    assert farm("restore", "--json")[:2] == (0, '{\n "restored": []\n}\n')


@pytest.mark.parametrize("command", ["status", "report", "plan", "hold", "energy"])
def test_an_argument_that_is_no_text_is_told(farm: Run, command: str) -> None:
    """A shell gives it so where a name is in another encoding than UTF-8."""
    code, out, err = farm(command, "m\udcfcnchen")
    assert code == 1 and not out and "'m\\udcfcnchen' is no text" in err and "rename a file" in err


def test_the_version_is_told(farm: Run) -> None:
    assert farm("--version")[:2] == (0, f"pocketfarm {version('pocketfarm')}\n")


def test_help_loads_nothing_that_it_does_not_need() -> None:
    heavy = {"numpy", "sqlalchemy", "redis", "lark", "yaml", "onnx", "pydantic_settings", "matplotlib", "celery"}
    heavy.add("orchestrator.model.experiment")
    program = f"import sys; from farm.cli import main; main(['--help']); sys.exit(str(sys.modules.keys() & {heavy}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr == "set()\n"


PARTS = "orchestrator.scheduling.scheduler workers.host farm.tasks.beat orchestrator.metrics.__main__ farm.web.pages"
LOADS = """
import importlib, os, sys
from farm.parts.start import SHARED
def loaded(names, known=frozenset()):
    for name in names:
        importlib.import_module(name)
    return {".".join(each.split(".")[:2]) for each in sys.modules} - known - set(sys.builtin_module_names)
known = loaded(SHARED)
print(*known, flush=True)
for part in sys.argv[1:]:
    if os.fork() == 0:
        print(*loaded([part], known), flush=True)
        os._exit(0)
    os.wait()
print(len(os.listdir("/proc/self/task")))
"""
"""Prints what the nursery loads, what each of some parts loads beside that, and how many threads it has."""


def test_a_part_loads_no_more_than_its_start_needs(seed: int) -> None:
    """Nor does the nursery; and what two parts load, it loads for both."""
    parts = random.Random(seed).sample(PARTS.split(), 2)
    done = subprocess.run([sys.executable, "-c", LOADS, *parts], capture_output=True, text=True, check=True)
    *lines, threads = done.stdout.splitlines()
    nursery, one, other = (set(line.split()) for line in lines)
    heavy = {"scipy", "matplotlib", "pyarrow", "onnx", "pandas", "httpx", "apprise", "authlib", "alembic", "typer"}
    assert heavy & (nursery | one | other) == set(), parts
    assert "jinja2" not in nursery
    assert {name for name in one & other if "." not in name} - sys.stdlib_module_names == set(), parts
    assert int(threads) == 1, "a thread of what forks may hold a lock that its children wait for"


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("", 300), ("wide", 300)])
def test_only_columns_bounds_what_goes_into_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, widest: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    output.out().print("abcd " * 60)
    assert max(map(len, capsys.readouterr().out.splitlines())) in (widest, widest - 1)


def test_the_shell_is_offered_networks_and_experiments(
    farm: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def offered(*words: str) -> set[str]:
        monkeypatch.setenv("_FARM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("farm", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            farm()
        return set(capsys.readouterr().out.split())

    assert "squeezenet_v1_0" in offered("infer", "--network", "squ")
    assert offered("results", "a") == set()
    with Ledger(Settings().ledger) as ledger:
        for name in ("alpha", "beta"):
            ledger.submit(f"{name}-1", make.experiment(name=name), [])
    assert offered("results", "") == {"latest", "alpha", "beta"}
    assert offered("results", "beta-") == {"beta-1"}


@pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["infer", "--backend", "cuda"], ["up", "--virtual", "x"]])
def test_wrong_usage_is_status_2_and_json_too(farm: Run, arguments: list[str]) -> None:
    code, out, err = farm(*arguments, "--json")
    assert code == 2
    assert json.loads(out)["error"]["cause"] == "usage"
    assert "error:" in err


def test_model_and_network_exclude_each_other(farm: Run) -> None:
    assert farm("plan", "-o", "x")[0] == 2
    assert farm("infer", "model.onnx", "--network", "lenet")[0] == 2


def test_a_wrong_spec_names_file_line_and_what_is_allowed(farm: Run, tmp_path: Path) -> None:
    spec = tmp_path / "wrong.yaml"
    spec.write_text("name: x\nworkload: {network: lenet}\nsampling:\n  blocs: 3\n")
    code, out, _ = farm("run", str(spec), "--json")
    message = json.loads(out)["error"]["message"]
    assert code == 1
    assert "wrong.yaml:4" in message
    assert "blocks" in message


def test_an_unreadable_model_is_an_error_of_the_compiler(farm: Run, tmp_path: Path) -> None:
    model = tmp_path / "broken.onnx"
    model.write_bytes(b"\x08\x07garbage")
    code, out, err = farm("plan", str(model), "-o", str(tmp_path / "plan"), "--json")
    assert code == 1
    assert json.loads(out)["error"]["cause"] == "compile"
    assert "broken.onnx" in err
    assert "Traceback" not in err


def test_a_setting_that_is_wrong_is_named(farm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_ADB_PORT", "many")
    code, out, _ = farm("status", "--json")
    assert code == 1
    assert "FARM_ADB_PORT" in json.loads(out)["error"]["message"]


def test_debug_shows_where_an_error_comes_from(farm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_DEBUG", "1")
    with pytest.raises(Exception, match="no farm runs"):
        farm("devices")


def test_networks_are_listed(farm: Run) -> None:
    code, out, _ = farm("networks", "--json")
    found = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert found["squeezenet_v1_0"]["inputs"] == {"data": [1, 3, 227, 227]}
    assert found["squeezenet_v1_0"]["parameters"] == 1_248_424


def test_networks_are_listed_without_their_weights(farm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.frontend.networks import NETWORKS, builder

    built = NETWORKS["lenet"](1)
    monkeypatch.setattr(builder, "seeded_normal", None)
    (listed,) = [row for row in json.loads(farm("networks", "--json")[1]) if row["name"] == "lenet"]
    assert listed["parameters"] == sum(constant.size for constant in built.constants.values())
    assert listed["outputs"] == {name: list(built.shapes[name]) for name in built.outputs}
    assert NETWORKS["lenet"](None).shapes == built.shapes


def test_a_plan_is_checked_on_this_workstation(farm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyopencl")
    command = ("plan", "--network", "lenet", "-o", str(tmp_path), "--check", "--json")
    code, out, _ = farm(*command)
    found = json.loads(out)["check"]
    assert code == 0 and found["ok"] and found["device"]
    assert [each["ok"] for each in found["outputs"]] == [True]
    assert 0 < found["outputs"][0]["max_abs_difference"] <= found["outputs"][0]["tolerance"]
    from kernels.plan import opencl_interpreter

    run = opencl_interpreter.run_opencl
    spoilt = lambda *given: replace(run(*given), outputs={k: v * 1.01 for k, v in run(*given).outputs.items()})  # noqa: E731
    monkeypatch.setattr(opencl_interpreter, "run_opencl", spoilt)
    code, out, _ = farm(*command)
    assert code == 1 and not json.loads(out)["check"]["ok"]
    assert farm(*command, "--backend", "vulkan")[0] == 2


def test_plan_is_written_and_summarised(farm: Run, tmp_path: Path) -> None:
    from kernels.plan.model import Bundle

    code, out, _ = farm("plan", "--network", "lenet", "-o", str(tmp_path / "plan"), "--json")
    facts = json.loads(out)
    bundle = Bundle.read(tmp_path / "plan")
    assert code == 0
    assert facts["plan_hash"] == bundle.plan.plan_hash
    assert facts["pool_bytes"] == sum(pool.bytes for pool in bundle.plan.pools)
    assert facts["dispatches"] + facts["copies"] == len(bundle.plan.steps)
    assert [one["kind"] for one in facts["movements"]] == ["input", "layout"]
    assert facts["moved_bytes"] > facts["moved_bytes_beyond_ports"] == facts["movements"][1]["bytes"] > 0
    text = farm("plan", "--network", "lenet", "-o", str(tmp_path / "plan"))[1]
    assert "conv1" in text
    assert "MFLOP" in text
    assert "1 step between layers" in text
    assert "ip1" in facts["movements"][1]["why"]


def test_a_built_in_network_needs_no_option_and_a_plan_no_folder(
    farm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A file of that name is the file; a folder is none."""
    monkeypatch.chdir(tmp_path)
    name = random.Random(seed).choice(["lenet", "conv3x3_8", "matmul_16", "cifar10_quick", "pynet_full"])
    (tmp_path / name).mkdir()
    found = [farm("plan", *words, "--json") for words in ((name,), ("--network", name))]
    assert found[0] == found[1] and json.loads(found[0][1])["folder"] is None and not any((tmp_path / name).iterdir())
    code, _, err = farm("plan", f"{name}x")
    assert code == 1 and f"did you mean {name!r}" in err
    (tmp_path / "lenetx").write_bytes(b"no model")
    assert "lenetx" in farm("plan", "lenetx")[2] and "built in" not in farm("plan", "lenetx")[2]


@pytest.mark.parametrize("kind", ["experiment", "suite", "record", "event", "plan"])
def test_schemas_are_schemas(farm: Run, kind: str) -> None:
    schema = json.loads(farm("schema", kind)[1])
    jsonschema.validators.validator_for(schema).check_schema(schema)


def test_the_experiment_schema_knows_right_from_wrong(farm: Run, tmp_path: Path) -> None:
    assert farm("schema", "-o", str(tmp_path / "s.json"))[0] == 0
    schema = json.loads((tmp_path / "s.json").read_text())
    right: Any = yaml.safe_load("name: x\nworkload: {network: lenet}\nmatrix: {backend: [opencl]}\n")
    jsonschema.validate(right, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**right, "mtrix": {}}, schema)


def test_the_suite_schema_knows_right_from_wrong(farm: Run) -> None:
    """A file that a suite's reader takes, and one with a field that it does not know."""
    schema = json.loads(farm("schema", "suite")[1])
    right: Any = yaml.safe_load((Path(__file__).parents[3] / "experiments/suites/nightly.yaml").read_text())
    jsonschema.validate(right, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**right, "scheduled": "02:30"}, schema)


def test_an_interrupt_while_the_commands_are_loaded_is_no_traceback() -> None:
    program = """
import sys
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "farm.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from farm.cli import main
sys.exit(main(["status"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_down_without_a_farm_has_nothing_to_end(farm: Run, tmp_path: Path) -> None:
    (tmp_path / ".farm").mkdir()
    code, out, _ = farm("down", "--json")
    assert code == 1
    assert json.loads(out)["error"]["message"] == "no farm runs on .farm"


def test_doctor_tells_and_its_status_agrees(farm: Run) -> None:
    code, out, _ = farm("doctor", "--json")
    found = json.loads(out)
    assert (code == 0) == found["ok"]
    assert {"python", "redis-server", "adb", "OpenCL", "Vulkan", "agent", "disk"} <= {
        c["name"] for c in found["checks"]
    }
    assert all(check["remedy"] for check in found["checks"] if check["verdict"] != "ok")


def test_doctor_finds_what_is_missing(farm: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, _ = farm("doctor", "--json")
    verdicts = {check["name"]: check for check in json.loads(out)["checks"]}
    assert code == 1
    assert verdicts["redis-server"]["verdict"] == "missing"
    assert verdicts["redis-server"]["remedy"] == "sudo apt-get install redis-server"
    assert verdicts["chromium"]["verdict"] == "warning"
    assert "missing" in farm("doctor")[1]


def test_doctor_finds_an_adb_server_of_another_version(farm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.parts.adb_server.server_version", lambda port: 32)
    code, out, _ = farm("doctor", "--json")
    check = next(check for check in json.loads(out)["checks"] if check["name"] == "adb server")
    assert code == 1
    assert check["remedy"].startswith("adb -P ")


STATE_USERS = [("up", "--virtual", "1"), ("demo",), ("status",), ("report", "latest"), ("release", "x")]


@pytest.mark.parametrize("command", STATE_USERS, ids=lambda command: command[0])
def test_a_state_folder_that_cannot_be_used_is_named(farm: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    handler = signal.getsignal(signal.SIGTERM)
    code, out, err = farm(*command, "--state", str(tmp_path / "file"), "--json")
    error = json.loads(out)["error"]
    assert signal.getsignal(signal.SIGTERM) == handler
    assert code == 1
    assert "cannot be" in error["message"] and str(tmp_path / "file") in error["message"]
    assert "--state" in error["remedy"]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "command", [("schema", "-o", "FILE"), ("plan", "--network", "lenet", "-o", "FILE")], ids=lambda command: command[0]
)
def test_a_file_that_cannot_be_written_is_named(farm: Run, command: tuple[str, ...]) -> None:
    code, out, err = farm(*("/proc/nowhere/x" if word == "FILE" else word for word in command), "--json")
    error = json.loads(out)["error"]
    assert code == 1
    assert error["cause"] == "file" and "/proc/nowhere" in error["message"]
    assert error["remedy"] in err


@pytest.mark.parametrize("found", [(), ("redis-server",)], ids=["nothing", "redis"])
def test_up_without_its_servers_says_what_to_install(
    farm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...]
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in found:
        (programs / name).symlink_to(required(name))
    monkeypatch.setenv("PATH", str(programs))
    code, out, _ = farm("up", "--virtual", "1", "--json")
    lacking = "adb" if found else "redis-server"
    assert code == 1
    assert json.loads(out)["error"]["message"] == f"{lacking} is not installed on this machine"
    assert json.loads(out)["error"]["remedy"] == f"sudo apt-get install {lacking}"


@pytest.mark.parametrize(
    ("outcomes", "causes", "well"),
    [
        ({"ok": 2}, ["", ""], True),
        ({"ok": 1, "invalid": 1}, ["", "background_load"], True),
        ({"ok": 1, "invalid": 1}, ["", "wrong_output"], False),
        ({"ok": 1, "lost": 1}, [""], False),
        ({"ok": 1, "waiting": 1}, [""], False),
    ],
)
def test_a_disturbed_block_is_no_failure_of_the_demo(outcomes: dict[str, int], causes: list[str], well: bool) -> None:
    blocks = [SimpleNamespace(outcome="invalid" if cause else "ok", cause=cause) for cause in causes]
    assert _all_measured(SimpleNamespace(outcomes=outcomes, blocks=blocks)) is well
