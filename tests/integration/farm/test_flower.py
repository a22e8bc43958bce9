"""Celery's own tools show which block runs on which phone of which host: `celery inspect`, Flower and its metrics."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from farm.parts.part import free_port
from orchestrator.coordination.inventory import Inventory
from tests.chaos.running_farm import READY_S, RunningFarm, environment, health, running_farm
from tests.chaos.test_two_hosts import second_host
from tests.servers import Server
from tests.waiting import eventually

pytestmark = [pytest.mark.slow]
SPEC = """\
schema_version: 1
name: seen
workload: {wait: 200 ms}
devices: {where: 'source == "virtual"', count: all}
matrix: {engine: wait, backend: cpu}
sampling: {blocks: 1, warmup: 1, samples: 3000, deadline: 20 min}
conditions: {battery_temp_max: 60 C, thermal_status_max: 6}
"""


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[RunningFarm]:
    ports = {"FARM_REDIS_PORT": str(free_port()), "FARM_WEB_PORT": str(free_port())}
    with running_farm(tmp_path / "farm", phones=1, options=["--listen", "127.0.0.1"], more=ports) as started:
        yield started


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


def test_celery_s_tools_show_which_block_runs_on_which_phone_of_which_host(farm: RunningFarm, tmp_path: Path) -> None:
    farm.cli("host", "add", "lab2", "--out", str(tmp_path / "lab2.join"))
    with second_host(tmp_path / "lab2", tmp_path / "lab2.join", slow=False), flower(farm) as url:
        far = "virtual-galaxy_s7-lab2-0"
        eventually(lambda: health(farm).get(far) == "ready", READY_S)
        near = next(serial for serial in health(farm) if serial.startswith("virtual-") and serial != far)
        (tmp_path / "seen.yaml").write_text(SPEC)
        experiment = str(farm.cli("run", str(tmp_path / "seen.yaml"))["experiment"])
        with farm.redis() as redis:
            eventually(lambda: {each.serial for each in Inventory(redis).progress()} >= {far, near}, READY_S)
            wanted = {each.serial: (each.job_id, each.attempt, each.token) for each in Inventory(redis).progress()}
        active = asked(farm, "active")
        found = {worker: [task["kwargs"] for task in tasks] for worker, tasks in active.items()}
        here = next(name for name in found if name.startswith("farm@") and name != "farm@lab2")
        for worker, serial in ((here, near), ("farm@lab2", far)):
            (task,), (placed,) = active[worker], found[worker]
            assert (placed["job"], placed["attempt"], placed["token"]) == wanted[serial] and placed["device"] == serial
            assert (task["name"], task["id"]) == ("farm.measure", f"{placed['job']}-1")
        shown = eventually(lambda: started(url, 2), READY_S)
        assert {task["worker"] for task in shown} == {here, "farm@lab2"}
        assert any(f"device={far}" in task["kwargs"] for task in shown)
        executing = "flower_worker_number_of_currently_executing_tasks"
        for worker in (here, "farm@lab2"):  # heartbeats tell it, one in ten seconds
            eventually(lambda line=f'{executing}{{worker="{worker}"}} 1.0': line in read(f"{url}/metrics"), READY_S)
        farm.cli("cancel", experiment)
        farm.until_finished(experiment)  # before another process asks
        eventually(lambda: not any(asked(farm, "active").values()), READY_S)
        assert {f"{job}-1" for job, *_ in wanted.values()} <= set(asked(farm, "revoked")["farm@lab2"])
