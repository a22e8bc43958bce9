from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.errors import interruptible
from orchestrator.model.errors import DeviceBusy, LeaseLost
from orchestrator.system.durable_files import file_name
from workers.devices.device_lock import device_lock


def test_one_session_at_a_time(tmp_path: Path) -> None:
    with device_lock(tmp_path, "a:1"):
        with pytest.raises(DeviceBusy), device_lock(tmp_path, "a:1", wait_s=0.05):
            pass
        with device_lock(tmp_path, "b"):
            pass
    with device_lock(tmp_path, "a:1"):
        pass


def test_who_waits_is_stopped_by_its_checkpoint(tmp_path: Path) -> None:
    def stop() -> None:
        raise LeaseLost("another has the device")

    with (
        device_lock(tmp_path, "a"),
        interruptible(stop),
        pytest.raises(LeaseLost),
        device_lock(tmp_path, "a", wait_s=60.0),
    ):
        pass
    with device_lock(tmp_path, "a"):
        pass


def test_another_process_counts_and_its_death_frees(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib; from workers.devices.device_lock import device_lock\n"
        "with device_lock(pathlib.Path(sys.argv[1]), 's'): print('held', flush=True); time.sleep(600)"
    )
    root = Path(__file__).parents[3]
    argv = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=root) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(DeviceBusy), device_lock(tmp_path, "s"):
            pass
        other.kill()
        other.wait()
        with device_lock(tmp_path, "s", wait_s=60.0):
            pass


def test_a_lock_file_that_was_removed_meanwhile_locks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is removed between its opening and its lock: whoever comes next makes another file."""
    file, lock, removed = tmp_path / "locks" / "a.lock", fcntl.flock, []

    def remove_first(*words: int) -> None:
        if not removed:
            removed.append(file.unlink())
        lock(*words)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with device_lock(tmp_path, "a", wait_s=60.0):
        assert removed and file.exists()
        with pytest.raises(DeviceBusy), device_lock(tmp_path, "a"):
            pass


@pytest.mark.parametrize("serial", ["127.0.0.1:5555", "../../etc", "a/b", ".hidden", "..."])
def test_a_serial_stays_in_its_folder(serial: str) -> None:
    assert "/" not in file_name(serial) and not file_name(serial).startswith(".")
