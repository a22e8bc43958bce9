"""One farm on two machines, as two state folders: TLS, a host of its own rights, its clock five hours slow, killed.

The hosts share nothing but the farm's Redis and its files. Celery's own tools show which block runs on which phone of
which of them: `celery inspect`, Flower and its metrics.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import onnx
import psutil
import pytest
from onnx import TensorProto, helper

from farm.parts.part import free_port
from orchestrator.coordination.inventory import Inventory
from tests.integration.workers.jobs import BUSY
from tests.servers import Server
from tests.waiting import eventually

from .running_farm import READY_S, RunningFarm, environment, health, running_farm

pytestmark = [pytest.mark.slow, pytest.mark.long]
SLOW_H = 5
SLOW_CLOCK = """\
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
/* The wall clock of every process that is started with this library is slow; nothing else is changed. */
int clock_gettime(clockid_t which, struct timespec *now) {
  static int (*own)(clockid_t, struct timespec *);
  if (!own) own = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int status = own(which, now);
  if (status == 0 && which == CLOCK_REALTIME) now->tv_sec -= SLOW_S;
  return status;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  now->tv_sec = at.tv_sec, now->tv_usec = at.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *now) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  if (now) *now = at.tv_sec;
  return at.tv_sec;
}
"""
SPEC = """\
schema_version: 1
name: {name}
workload: {{onnx: model.onnx}}
devices: {{where: '{where}', count: any}}
matrix: {{backend: cpu}}
sampling: {{blocks: {blocks}, warmup: 1, samples: 3, load: {load}, deadline: 60 s}}
conditions: {{battery_temp_max: 60 C, thermal_status_max: 6}}
"""
SEEN = """\
schema_version: 1
name: seen
workload: {wait: 200 ms}
devices: {where: 'source == "virtual"', count: all}
matrix: {engine: wait, backend: cpu}
sampling: {blocks: 1, warmup: 1, samples: 3000, deadline: 20 min}
conditions: {battery_temp_max: 60 C, thermal_status_max: 6}
"""
FAR = "virtual-galaxy_s7-lab2-0"
"""The phone of the second host."""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFarm]:
    ports = {f"FARM_{name}_PORT": str(free_port()) for name in ("REDIS", "WEB", "PEOPLE")}
    state = tmp_path_factory.mktemp("first") / "farm"
    with running_farm(state, phones=1, options=["--listen", "127.0.0.1", "--admin", "anna"], more=ports) as started:
        yield started


@pytest.fixture(scope="module")
def lab2(farm: RunningFarm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of the second host; what it joins with lies beside it."""
    state = tmp_path_factory.mktemp("second") / "lab2"
    added = farm.cli("host", "add", "lab2", "--out", str(state.with_suffix(".join")))
    assert Path(added["file"]).stat().st_mode & 0o777 == 0o600
    return state


@pytest.fixture(scope="module")
def second(lab2: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`farm up --join` on a machine whose clock is slow."""
    join = ["--join", str(lab2.with_suffix(".join"))]
    command = [sys.executable, "-m", "farm.cli", "up", "--state", str(lab2), *join, "--virtual", "1"]
    clock = {"LD_PRELOAD": str(slow_clock(lab2.parent))}
    log = lab2.with_suffix(".up")
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**environment(), **clock}
        )
        try:
            eventually(lambda: b"is up" in log.read_bytes() or process.poll() is not None, READY_S)
            assert process.poll() is None, log.read_text()
            yield process
        finally:
            process.terminate()
            process.wait(60)


def test_the_first_administrator_comes_by_a_link_that_counts_once(farm: RunningFarm) -> None:
    log = farm.state.with_name("up.log")
    eventually(lambda: "/password#" in log.read_text(), READY_S)
    (link,) = re.findall(r"https://127\.0\.0\.1:(\d+)/password#(\S+)", log.read_text())
    trusted = ssl.create_default_context(cafile=farm.state / "tls" / "ca.crt")

    def ask(path: str, form: dict[str, str] | None = None, cookie: str = "") -> tuple[int, str]:
        connection = http.client.HTTPSConnection("127.0.0.1", int(link[0]), timeout=60, context=trusted)
        kind = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
        with closing(connection):
            connection.request("POST" if form else "GET", path, urlencode(form or {}), kind)
            reply = connection.getresponse()
            return reply.status, str(reply.headers.get("Set-Cookie"))

    def set_password(text: str) -> tuple[int, str]:
        return ask("/password", {"token": link[1], "password": text, "again": text})

    status, cookie = set_password("correct horse battery")
    assert status == 303 and "Secure" in cookie and "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert set_password("another horse battery")[0] == 403
    assert [ask("/audit", cookie=each)[0] for each in ("", cookie.partition(";")[0])] == [303, 200]


def test_celery_s_tools_show_which_block_runs_on_which_phone_of_which_host(
    farm: RunningFarm, second: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    with flower(farm) as url:
        eventually(lambda: health(farm).get(FAR) == "ready", READY_S)
        near = next(serial for serial in health(farm) if serial.startswith("virtual-") and serial != FAR)
        (tmp_path / "seen.yaml").write_text(SEEN)
        experiment = str(farm.cli("run", str(tmp_path / "seen.yaml"))["experiment"])
        with farm.redis() as redis:
            eventually(lambda: {each.serial for each in Inventory(redis).progress()} >= {FAR, near}, READY_S)
            wanted = {each.serial: (each.job_id, each.attempt, each.token) for each in Inventory(redis).progress()}
        active = asked(farm, "active")
        found = {worker: [task["kwargs"] for task in tasks] for worker, tasks in active.items()}
        here = next(name for name in found if name.startswith("farm@") and name != "farm@lab2")
        for worker, serial in ((here, near), ("farm@lab2", FAR)):
            (task,), (placed,) = active[worker], found[worker]
            assert (placed["job"], placed["attempt"], placed["token"]) == wanted[serial] and placed["device"] == serial
            assert (task["name"], task["id"]) == ("farm.measure", f"{placed['job']}-1")
        shown = eventually(lambda: started(url, 2), READY_S)
        assert {task["worker"] for task in shown} == {here, "farm@lab2"}
        assert any(f"device={FAR}" in task["kwargs"] for task in shown)
        executing = "flower_worker_number_of_currently_executing_tasks"
        for worker in (here, "farm@lab2"):  # heartbeats tell it, one in ten seconds
            eventually(lambda line=f'{executing}{{worker="{worker}"}} 1.0': line in read(f"{url}/metrics"), READY_S)
        farm.cli("cancel", experiment)
        farm.until_finished(experiment)  # before another process asks
        eventually(lambda: not any(asked(farm, "active").values()), READY_S)
        assert {f"{job}-1" for job, *_ in wanted.values()} <= set(asked(farm, "revoked")["farm@lab2"])


def test_a_farm_on_two_hosts_loses_no_job_when_one_is_killed(
    farm: RunningFarm, lab2: Path, second: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    eventually(lambda: health(farm).get(FAR) == "ready", READY_S)
    with farm.redis() as redis:
        seen = [each.seen_at for each in Inventory(redis).hosts()]
        assert len(seen) == 2 and all(abs(time.time() - at) < 60 for at in seen), "by the reader's clock"
    model(tmp_path / "model.onnx")
    (far,) = farm.until_finished(submitted(farm, tmp_path, "there", f'serial == "{FAR}"', blocks=1, load="0.1 s"))
    near = next(serial for serial in health(farm) if serial.startswith("virtual-") and serial != FAR)
    farm.cli("hold", near, "--alone")  # so that the work begins on the host that is to die
    experiment = submitted(farm, tmp_path, "both", 'source == "virtual"', blocks=3, load="4 s")
    eventually(lambda: running_on(farm, FAR), READY_S)
    kill(second)
    farm.cli("release", near)
    assert far["device"]["host"] == "lab2"
    assert far["outcome"] == "ok" or far["cause"] in BUSY, far["reasons"]
    assert list((lab2 / "artifacts").glob("*/*")), "it has fetched the model"
    assert abs(far["clock_ahead_s"] - SLOW_H * 3600) < 60
    assert abs(far["started_at"] + SLOW_H * 3600 - time.time()) < 600, "a record keeps its host's own clock"
    records = farm.until_finished(experiment)
    counted = [record for record in records if record["outcome"] in ("ok", "invalid")]
    assert Counter(Counter(record["job_id"] for record in counted).values()) == {1: 3}, "each job once"
    assert max(record["attempt"] for record in counted) == 2, "what the dead host ran was done again, elsewhere"
    assert {record["clock_ahead_s"] for record in counted if record["device"]["host"] != "lab2"} == {0}
    assert [host["running"] for host in farm.cli("host", "list")] == [0, 0]


def submitted(farm: RunningFarm, folder: Path, name: str, where: str, *, blocks: int, load: str) -> str:
    """An experiment of one cell with the model file, whose blocks last so long; its id."""
    path = folder / f"{name}.yaml"
    path.write_text(SPEC.format(name=name, where=where, blocks=blocks, load=load))
    return str(farm.cli("run", str(path))["experiment"])


def slow_clock(folder: Path) -> Path:
    """A library that gives a process another wall clock, where it is loaded first."""
    (folder / "slow.c").write_text(SLOW_CLOCK)
    library = folder / "slow.so"
    command = ["gcc", "-D_GNU_SOURCE", f"-DSLOW_S={SLOW_H * 3600}", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(folder / "slow.c"), "-ldl"], check=True, capture_output=True)
    return library


def running_on(farm: RunningFarm, serial: str) -> bool:
    with farm.redis() as redis:
        return any(each.serial == serial and each.phase == "running" for each in Inventory(redis).progress())


def kill(host: subprocess.Popen[bytes]) -> None:
    """Kill all of it as a power cut does: nobody cleans up."""
    family = psutil.Process(host.pid).children(recursive=True)
    for process in [*reversed(family), psutil.Process(host.pid)]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=30)


def model(path: Path) -> None:
    """A convolution of a millisecond or so."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 64, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 62, 62])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [32, 8, 3, 3], [i % 7 / 7 for i in range(2304)])
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "conv", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def celery(farm: RunningFarm, *words: str) -> list[str]:
    return [sys.executable, "-m", "celery", "-A", "farm.tasks", *words]


def asked(farm: RunningFarm, what: str) -> dict[str, list[dict[str, Any]]]:
    """Return the output of `celery inspect`."""
    said = subprocess.run(
        celery(farm, "inspect", what, "--json", "--timeout", "5"), capture_output=True, text=True, env=of(farm)
    )
    found: dict[str, list[dict[str, Any]]] = json.loads(said.stdout) if said.returncode == 0 else {}
    return found


def of(farm: RunningFarm) -> dict[str, str]:
    return {**environment(), "FARM_STATE": str(farm.state)}


@contextmanager
def flower(farm: RunningFarm) -> Iterator[str]:
    """Flower on loopback; its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return bool(read(f"{url}/healthcheck"))
        except OSError:
            return False

    columns = "--tasks-columns=name,uuid,state,kwargs,worker,started,runtime"
    options = ["flower", "--address=127.0.0.1", f"--port={port}", columns]
    open_to_all = {"FLOWER_UNAUTHENTICATED_API": "true"}
    server = Server(celery(farm, *options), farm.state / "flower.log", answers, env={**of(farm), **open_to_all})
    server.start()
    try:
        yield url
    finally:
        server.stop()


def started(url: str, count: int) -> list[dict[str, Any]]:
    """Blocks that run, as Flower shows them; none unless there are so many."""
    shown: dict[str, dict[str, Any]] = json.loads(read(f"{url}/api/tasks?taskname=farm.measure&state=STARTED"))
    return list(shown.values()) if len(shown) == count else []


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as reply:
        return str(reply.read().decode())
