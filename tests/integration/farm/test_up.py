"""`farm up` with real parts: Redis, adb server, a virtual phone, scheduler, worker, exporter."""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import psutil
import pytest
import redis

from farm.cli import main
from farm.endpoints import read, settings_for
from farm.processes import marked
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger
from orchestrator.ledger.rows import OPEN
from orchestrator.model.device import Device, Health
from orchestrator.model.record import Outcome, Record
from tests.servers import required, told_by
from tests.waiting import eventually
from virtual_phones.adb.message import VERSION, Message, encode_header

ROOT = Path(__file__).resolve().parents[3]
READY_S = 240.0
LONG_TO_COMPILE = """\
schema_version: 1
name: long
workload: {network: pynet_level_1}
devices: {where: source == "virtual", count: all}
matrix: {backend: [opencl]}
sampling: {blocks: 1, samples: 1, deadline: 10 min}
"""


def calm() -> dict[str, str]:
    """The environment of a farm. Those of several tests start at the same time: the usual port, free when one looks,
    may soon be another's."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("FARM_")}
    return kept | {"FARM_EXPORTER_PORT": "0", "FARM_PAGES_PORT": "0"}


@pytest.fixture(autouse=True)
def _needs_servers() -> None:
    for binary in ("redis-server", "adb"):
        required(binary)


def farm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in this process: the start of another one is a second of a core."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main(arguments)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def apart(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "farm.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, env=calm(), capture_output=True, text=True, timeout=200)


class Up:
    """A `farm up` in the background."""

    def __init__(self, state: Path, *options: str, **environment: str) -> None:
        self.state = state
        command = [sys.executable, "-m", "farm.cli", "up", "--json", "--state", str(state), *options]
        self.log = state.with_suffix(".up")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=calm() | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0,
            )

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return read(self.state) is not None

        try:
            eventually(ready, READY_S)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.log.read_text()}") from e

    def ready_devices(self) -> list[Device]:
        """The devices that work could be given now. Redis tells it: a command would start a Python each time."""
        with client_of(settings_for(self.state)) as client:
            return [each for each in Inventory(client).devices() if each.state.health is Health.READY]

    def family(self) -> list[psutil.Process]:
        """Every process that belongs to it and runs."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        states = told_by(children, lambda child: (child, child.status()))
        return [child for child, status in states if status != psutil.STATUS_ZOMBIE]

    def die(self) -> None:
        """Kill it, so that it can see to nothing itself: nothing is left. A farm is started for other tests, and ends
        so."""
        family = self.family()
        assert len(family) >= 12  # six parts and their keepers
        self.process.kill()
        self.process.wait(60)
        assert psutil.wait_procs(family, timeout=60)[1] == []
        eventually(lambda: marked(self.state) == [])
        assert read(self.state) is None

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)


@pytest.fixture
def up() -> Iterator[Up]:
    """A farm in a folder that all may enter, as a project's is; started by somebody who hides nothing (umask 0)."""
    with tempfile.TemporaryDirectory(prefix="farm-") as folder:
        Path(folder).chmod(0o755)
        found = Up(Path(folder) / "farm", "--virtual", "1")
        try:
            found.wait_until_ready()
            yield found
        finally:
            found.kill()


def test_up_serves_restarts_refuses_a_second_and_ends(up: Up) -> None:
    """One start for all of this: it takes seconds."""
    endpoints = read(up.state)
    assert endpoints is not None
    assert endpoints.pid == up.process.pid
    assert (up.state / "farm.json").stat().st_mode & 0o777 == 0o600
    client = redis.Redis.from_url(endpoints.redis_url, password=endpoints.redis_password.get_secret_value())
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(endpoints.redis_url).ping()
    with urllib.request.urlopen(endpoints.exporter_url, timeout=60) as reply:
        assert b"farm_" in reply.read()
    _the_secret_is_in_no_command_line(up, endpoints.redis_password.get_secret_value())

    _the_phone_is_listed(up)
    _nobody_else_gets_in(up, endpoints.exporter_port, endpoints.pages_port)
    _a_second_one_is_refused(up)
    _a_dead_redis_and_adb_server_come_back(up, client)
    client.close()
    _another_state_folder_names_it(up)
    experiment = _a_job_compiles(up)
    _down_leaves_nothing(up)
    _its_job_waits_again(up, experiment)


def _the_secret_is_in_no_command_line(up: Up, secret: str) -> None:
    assert all(secret not in " ".join(words) for words in told_by(up.family(), psutil.Process.cmdline))


def _the_phone_is_listed(up: Up) -> None:
    def ready() -> bool:
        done = farm("devices", "--state", str(up.state), "--json")
        found = json.loads(done.stdout)
        return any(d["facts"]["source"] == "virtual" and d["state"]["health"] == "ready" for d in found)

    eventually(ready, 60)
    assert "VIRTUAL" in farm("devices", "--state", str(up.state)).stdout


def _nobody_else_gets_in(up: Up, exporter_port: int, pages_port: int) -> None:
    """Check the modes of files, and what another user meets at sockets and ports."""
    phones = {found / "root" for found in (up.state / "virtual").iterdir() if found.is_dir()}
    made = [path for path in (up.state, *up.state.rglob("*")) if not phones & {path, *path.parents}]
    open_ = [
        f"{path.lstat().st_mode:o} {path}" for path in made if not path.is_symlink() and path.lstat().st_mode & 0o077
    ]
    assert not open_, "open to others: " + ", ".join(open_)
    assert {"ledger.sqlite", "farm.json", "redis.conf", "adbkey", "adb.sock", "control.sock"} <= {p.name for p in made}
    connections = told_by(up.family(), lambda process: process.net_connections("tcp"))
    listening = [each for of in connections for each in of if each.status == psutil.CONN_LISTEN]
    ports = {each.laddr.port for each in listening}
    assert exporter_port in ports and {each.laddr.ip for each in listening} == {"127.0.0.1"}
    met = as_nobody(lambda: _what_a_stranger_meets(made, sorted(ports)))
    assert met.pop(str(exporter_port)), "figures are everybody's"
    assert met.pop(str(pages_port)).startswith("HTTP"), "so is looking at the pages"
    assert set(met.values()) <= {"-NOAUTH", "AUTH", "PermissionError"}, met
    assert {"-NOAUTH", "AUTH"} <= set(met.values()), "Redis and the phone were asked"


def _what_a_stranger_meets(paths: list[Path], ports: list[int]) -> dict[str, str]:
    """File or port -> the first word that one gets from it."""
    met = {}
    for path in paths:
        try:
            if stat.S_ISSOCK(path.stat().st_mode):
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(str(path))
            met[str(path)] = str(list(path.iterdir()) if path.is_dir() else path.read_bytes()[:20])
        except OSError as e:
            met[str(path)] = type(e).__name__
    adb = encode_header(Message(b"CNXN", VERSION, 4096, b"host::")) + b"host::"
    for port in ports:
        for first in (b"PING\r\n", b"GET /metrics HTTP/1.0\r\n\r\n", adb):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client, suppress(OSError):
                client.sendall(first)
                client.shutdown(socket.SHUT_WR) if first != adb else None
                words = client.recv(100).split(b"\1" if first == adb else b" ")
                if words != [b""]:
                    met[str(port)] = words[0].decode(errors="replace")
                    break
    return met


def as_nobody(ask: Callable[[], dict[str, str]]) -> dict[str, str]:
    """The answer of a process of another user; of our own rights where we are not root, as nobody else's can be had."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(writer, json.dumps(ask()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read()
    os.waitpid(pid, 0)
    return dict(json.loads(said))


def _a_second_one_is_refused(up: Up) -> None:
    done = apart("up", "--virtual", "1", "--state", str(up.state), "--json")
    assert done.returncode == 1
    assert f"pid {up.process.pid}" in json.loads(done.stdout)["error"]["message"]
    assert up.process.poll() is None


def _a_dead_redis_and_adb_server_come_back(up: Up, client: redis.Redis) -> None:
    for name in ("redis-server", "adb"):
        (old,) = _parts(up, name)
        psutil.Process(old).kill()
        eventually(lambda name=name, old=old: any(pid != old for pid in _parts(up, name)))
    eventually(lambda: _pings(client))
    eventually(lambda: "device" in _adb_devices(up))


def _parts(up: Up, name: str) -> list[int]:
    """Pids of the farm's processes of a name."""
    return [each.pid for each in up.family() if each.name() == name]


def _pings(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def _adb_devices(up: Up) -> str:
    from farm.parts.adb_server import ask

    try:
        used = settings_for(up.state)
        return ask(used.adb_socket or used.adb_port, "host:devices").partition("\t")[2]
    except Exception:  # it is being started again
        return ""


def _another_state_folder_names_it(up: Up) -> None:
    error = json.loads(farm("status", "--state", str(up.state.parent / "other"), "--json").stdout)["error"]
    assert str(up.state) in {each.strip("`',") for each in error["remedy"].replace("--state ", "").split(" ")}
    assert not (up.state.parent / "other").exists()


def _a_job_compiles(up: Up) -> str:
    """Returns while it does: importing, lowering and the reference take longer than the worker's grace."""
    spec = up.state / "long.yaml"
    spec.write_text(LONG_TO_COMPILE)
    said = json.loads(farm("run", str(spec), "--yes", "--state", str(up.state), "--json").stdout)
    with client_of(settings_for(up.state)) as client:
        eventually(lambda: [each for each in Inventory(client).progress() if each.phase == "compiling"])
    return str(said["experiment"])


def _its_job_waits_again(up: Up, experiment: str) -> None:
    """The worker gave it back itself, instead of being killed; the record may be on disk alone, for the next start."""
    with Ledger(settings_for(up.state).ledger) as ledger:
        (job,) = ledger.jobs(experiment)
        taken_in = ledger.records_of([job.job_id])
    spooled = [Record.model_validate_json(path.read_text()) for path in (up.state / "spool").glob("*.json")]
    assert job.state in OPEN
    assert {(record.outcome, record.cause) for record in (*taken_in, *spooled)} == {(Outcome.LOST, "host_stopping")}


def _down_leaves_nothing(up: Up) -> None:
    family = up.family()
    done = farm("down", "--state", str(up.state), "--json")
    assert json.loads(done.stdout)["ended"] == up.process.pid
    assert up.process.wait(60) == 0
    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert marked(up.state) == []
    assert not (up.state / "farm.json").exists()
    lines = up.log.read_text().splitlines()
    ended = [line.split()[0] for line in lines if "stopped" in line]
    assert ended == ["pages", "exporter", "beat", "worker", "scheduler", "phones", "adb", "redis"]


def test_a_part_that_cannot_start_is_named_with_its_log(tmp_path: Path) -> None:
    state = tmp_path / "farm"
    done = apart("up", "--profile", "no_such_phone", "--state", str(state), "--json")
    message = json.loads(done.stdout)["error"]["message"]
    assert done.returncode == 1
    assert "phones did not start" in message
    assert "no_such_phone" in message
    assert marked(state) == []
