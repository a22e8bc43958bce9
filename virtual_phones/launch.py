"""Start virtual phones from Python, in a process of their own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .control import ControlClient, PhoneStatus

_END_S = 10.0


@dataclass(frozen=True)
class VirtualPhones:
    """Running virtual phones."""

    phones: tuple[PhoneStatus, ...]
    """The phones as they were when they started; `control.phones()` tells how they are now."""
    control: ControlClient
    pid: int

    @property
    def serials(self) -> list[str]:
        """Addresses to `adb connect`, which are also the serials that adb shows."""
        return [phone.serial for phone in self.phones]


@contextlib.contextmanager
def start_phones(
    state: Path,
    profiles: Sequence[str],
    *,
    key: Path,
    count: int | None = None,
    slot: Path | None = None,
    speed: float = 1.0,
    script: Path | None = None,
    ready_s: float = 60.0,
) -> Iterator[VirtualPhones]:
    """Run virtual phones inside a `with` block; they end with it, and everything that runs in them.

    `key`: the `adbkey.pub` of the only adb server that is let in. Raises RuntimeError with what the process said where
    they are not up within `ready_s`.
    """
    command = [sys.executable, "-m", "virtual_phones", "--state", str(state), "--phones", ",".join(profiles)]
    command += ["--key", str(key), "--speed", str(speed), "--with-parent"]
    command += ["--count", str(count)] if count is not None else []
    command += ["--slot", str(slot)] if slot else []
    command += ["--faults", str(script)] if script else []
    state.mkdir(parents=True, exist_ok=True)
    repository = Path(__file__).parents[1]
    with (state / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=repository, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield _running(process, state, ready_s)
        finally:
            _end(process)


def read_phones(state: Path) -> VirtualPhones:
    """The phones that run in a state folder. Raises OSError or ValueError where none do."""
    document = json.loads((state / "phones.json").read_text())
    phones = tuple(PhoneStatus.model_validate(phone) for phone in document["phones"])
    return VirtualPhones(phones, ControlClient(Path(document["control"])), int(document["pid"]))


def _running(process: subprocess.Popen[bytes], state: Path, ready_s: float) -> VirtualPhones:
    give_up_at = time.monotonic() + ready_s
    while time.monotonic() < give_up_at and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            found = read_phones(state)
            if found.pid == process.pid:
                return found
        time.sleep(0.02)
    raise RuntimeError(f"virtual phones are not up after {ready_s} s: {(state / 'server.log').read_text()[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
