"""The processes of virtual phones: real ones, found by descent and environment."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

from tests.waiting import eventually
from virtual_phones.system.processes import ROOT_VARIABLE, ProcessTable, end_all, send_signal


def test_what_a_phone_runs_is_found_by_descent(tmp_path: Path) -> None:
    """Its programs and other threads have started some, too; another phone's, and nobody's, are told apart."""
    mine, other, over = tmp_path / "mine", tmp_path / "other", threading.Event()
    started: list[subprocess.Popen[bytes]] = []

    def start(root: Path | None, script: str) -> subprocess.Popen[bytes]:
        environment = {"PATH": os.environ["PATH"], **({ROOT_VARIABLE: str(root)} if root else {})}
        started.append(process := subprocess.Popen(["sh", "-c", script], env=environment))
        return process

    def start_and_stay() -> None:
        start(mine, "exec sleep 60")
        over.wait()

    thread = threading.Thread(target=start_and_stay)
    thread.start()
    start(mine, "sleep 61 & wait")
    start(other, "exec sleep 62")
    stranger = start(None, "exec sleep 63")
    table = ProcessTable()
    try:
        eventually(lambda: sorted(each.name for each in table.of(mine)) == ["sh", "sleep", "sleep"])
        eventually(lambda: [each.name for each in table.of(other)] == ["sleep"])
        assert table.scan().keys() == {str(mine), str(other)}
        assert len(table.below(tmp_path)) == 4
    finally:
        over.set()
        thread.join()
        send_signal(table.below(tmp_path), signal.SIGKILL)
        stranger.kill()
        for each in started:
            each.wait()
    end_all(table, tmp_path)
    assert not table.scan() and not table.below(tmp_path)
