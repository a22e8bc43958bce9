"""The Redis and the adb server that a farm takes, and what it says where it cannot."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.parts import adb_server, redis_server, services
from farm.parts.adb_server import AdbServer
from farm.parts.part import Part, free_port
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory
from orchestrator.model.errors import ServiceDown, SetupError
from orchestrator.system.config import Settings
from tests.servers import private_adb, required
from tests.waiting import eventually


def settings(state: Path, port: int) -> Settings:
    return Settings(state=state, adb_path=required("adb"), adb_port=port)


def test_a_running_server_of_the_same_version_is_used_and_not_ours_to_end(tmp_path: Path) -> None:
    with private_adb(tmp_path / "adb") as port:
        assert AdbServer(settings(tmp_path, port), real=True, virtual=False).part() is None


def test_a_server_of_another_version_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with private_adb(tmp_path / "adb") as port:
        monkeypatch.setattr(adb_server, "client_version", lambda path: 32)
        with pytest.raises(SetupError, match=f"port {port} has version 41") as caught:
            AdbServer(settings(tmp_path, port), real=True, virtual=False).part()
        assert "kill-server" in str(caught.value.remedy)


def test_without_a_server_one_is_started_there(tmp_path: Path) -> None:
    port = free_port()
    part = AdbServer(settings(tmp_path, port), real=True, virtual=False).part()
    assert part is not None
    assert part.command[1:3] == ("-P", str(port))
    assert "HOME" not in part.environment  # real phones trust the user's own key


def test_virtual_phones_get_a_private_server(tmp_path: Path) -> None:
    with private_adb(tmp_path / "adb") as port:
        server = AdbServer(settings(tmp_path, port), real=False, virtual=True)
        part = server.part()
    assert part is not None and server.socket is not None
    assert part.command[1:3] == ("-L", f"localfilesystem:{server.socket}")
    assert part.environment["ADB_USB"] == "0"
    assert Path(part.environment["HOME"]).is_relative_to(tmp_path)


def test_real_and_virtual_phones_share_the_private_server_alone(tmp_path: Path) -> None:
    """Whoever reaches a server on TCP would command the virtual phones, which run programs here."""
    with private_adb(tmp_path / "adb") as port:
        server = AdbServer(settings(tmp_path, port), real=True, virtual=True)
        with pytest.raises(SetupError, match=f"runs on port {port} and holds the real phones"):
            server.part()
    part = server.part()
    assert part is not None and "ADB_USB" not in part.environment
    assert part.command[1] == "-L"


def test_a_phone_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with private_adb(tmp_path / "adb") as port:
        server = AdbServer(settings(tmp_path, port), real=True, virtual=False)
        with pytest.raises(ServiceDown, match=nobody):
            server.connect(nobody)
        server.disconnect(nobody)


def test_no_redis_on_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="not installed") as caught:
        redis_server.find()
    assert caught.value.remedy == "sudo apt-get install redis-server"


@pytest.mark.parametrize(("said", "fits"), [("v=6.2.14", False), ("v=7.0.15", True), ("v=8.0.0", True), ("?", False)])
def test_an_old_redis_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, fits: bool) -> None:
    fake = tmp_path / "redis-server"
    fake.write_text(f"#!/bin/sh\necho 'Redis server {said} sha=0'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    if fits:
        assert redis_server.find() == (str(fake), said.removeprefix("v="))
    else:
        with pytest.raises(SetupError, match=r"7\.0 or newer"):
            redis_server.find()


@contextmanager
def running(part: Part, **environment: str) -> Iterator[None]:
    part.before_start()
    process = subprocess.Popen(part.command, env={**os.environ, **part.environment, **environment})
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_a_scheduler_is_ready_when_it_has_ended_a_turn(tmp_path: Path) -> None:
    """It is not ready when its process is there: it may wait for its ledger, or end at once."""
    required("redis-server")
    server = redis_server.RedisServer(tmp_path)
    farm = Settings(state=tmp_path, redis_url=server.url, redis_password=server.password)
    scheduler, redis = services.scheduler(server), server.part()
    assert not scheduler.is_ready()
    told = {"FARM_STATE": str(tmp_path), "FARM_REDIS_URL": server.url, "FARM_REDIS_PASSWORD": server.password}
    with running(redis):
        eventually(redis.is_ready)
        with client_of(farm) as client:
            Inventory(client).announce_waiting({})  # as an earlier one said it
            with running(scheduler, **told, FARM_LEDGER_URL=f"sqlite:///{tmp_path}"):  # a folder is no ledger
                assert not scheduler.is_ready()
            assert not scheduler.is_ready()
        with running(scheduler, **told):
            eventually(scheduler.is_ready)
