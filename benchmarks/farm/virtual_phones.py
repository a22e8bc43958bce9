"""The number of virtual phones that one process and one adb server carry, and how fast they answer.

    python -m benchmarks.farm.virtual_phones --phones 200 --seconds 5 --threads 16

Starts the phones and a private adb server, connects all, lets threads ask phone after phone for a property through
shell v2, pushes a file, and prints one JSON object. Everything that it started ends with it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from benchmarks.command_line import run_command
from virtual_phones.launch import start_phones

_EXIT = 3


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def adb_server(home: Path) -> Iterator[tuple[int, int]]:
    """A private adb server; its port and pid."""
    binary, port = shutil.which("adb"), free_port()
    if binary is None:
        sys.exit("error: adb is not installed (apt-get install adb)")
    quiet = {"ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0", "HOME": str(home), "ANDROID_ADB_SERVER_PORT": str(port)}
    with (home / "adb.log").open("wb") as log:
        command = [binary, "-P", str(port), "nodaemon", "server"]
        process = subprocess.Popen(command, env={**os.environ, **quiet}, stdout=log, stderr=log)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.02)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(10)


def exactly(file: object, size: int) -> bytes:
    """`size` bytes, or EOFError."""
    data: bytes = file.read(size)  # type: ignore[attr-defined]
    if len(data) < size:
        raise EOFError("the adb server closed the connection")
    return data


@contextlib.contextmanager
def service(port: int, *requests: str) -> Iterator[tuple[socket.socket, object]]:
    """A smart-socket connection that has made its requests."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock, sock.makefile("rb") as file:
        for request in requests:
            sock.sendall(f"{len(request):04x}{request}".encode())
            if exactly(file, 4) != b"OKAY":
                raise RuntimeError(f"{request}: {exactly(file, int(exactly(file, 4), 16)).decode()}")
        yield sock, file


def connect(port: int, serial: str) -> str:
    """The adb server's reply, or what went wrong instead of one."""
    try:
        with service(port, f"host:connect:{serial}") as (_, file):
            return exactly(file, int(exactly(file, 4), 16)).decode()
    except (OSError, EOFError, RuntimeError) as error:
        return f"{serial}: {error}"


def shell_ms(port: int, serial: str, command: str) -> float:
    """Milliseconds of one command through shell v2, from connecting to its exit status."""
    start = time.perf_counter()
    with service(port, f"host:transport:{serial}", f"shell,v2,raw:{command}") as (_, file):
        kind = -1
        while kind != _EXIT:
            kind, size = struct.unpack("<BI", exactly(file, 5))
            data = exactly(file, size)
    if data != b"\0":
        raise RuntimeError(f"{command}: exit status {data[0]}")
    return (time.perf_counter() - start) * 1000


def ask_for(port: int, serials: list[str], seconds: float) -> list[float]:
    """Ask phone after phone until the time is over; the times in ms."""
    end, times = time.perf_counter() + seconds, []
    for serial in itertools.cycle(serials):
        if time.perf_counter() > end:
            return times
        times.append(shell_ms(port, serial, "getprop ro.product.model"))
    return times


def measure(phones: int, seconds: float, threads: int) -> dict[str, object]:
    """Run the benchmark once."""
    with tempfile.TemporaryDirectory(prefix="virtual-phones-") as name, adb_server(Path(name)) as (port, adb_pid):
        key = Path(name) / ".android" / "adbkey.pub"
        start = time.perf_counter()
        with start_phones(
            Path(name) / "phones", ["galaxy_s7", "pixel_7"], count=phones, key=key, ready_s=120
        ) as running:
            up_s = time.perf_counter() - start
            server = psutil.Process(running.pid)
            start = time.perf_counter()
            with ThreadPoolExecutor(threads) as pool:
                replies = list(pool.map(lambda serial: connect(port, serial), running.serials))
                connect_s = time.perf_counter() - start
                failed = [reply for reply in replies if not reply.startswith("connected to")]
                before = server.cpu_times()
                time.sleep(3)
                after = server.cpu_times()
                idle = (after.user + after.system - before.user - before.system) / 3
                alone = ask_for(port, running.serials, min(seconds, 2))
                shares = [running.serials[number::threads] for number in range(threads)]
                start = time.perf_counter()
                busy = list(pool.map(lambda share: ask_for(port, share, seconds), [share for share in shares if share]))
                took_s = time.perf_counter() - start
            times = [value for share in busy for value in share]
            return {
                "phones": phones,
                "threads": threads,
                "start_s": round(up_s, 2),
                "connect_all_s": round(connect_s, 2),
                "failed_connects": failed,
                "idle_cpu_cores": round(idle, 3),
                "shell_ms_one_at_a_time": {"p50": round(statistics.median(alone), 2)},
                "shell_ms_busy": {
                    "p50": round(statistics.median(times), 2),
                    "p99": round(statistics.quantiles(times, n=100)[98], 2),
                },
                "shells_per_s": round(len(times) / took_s),
                "phones_rss_mb": round(server.memory_info().rss / 1e6),
                "adb_rss_mb": round(psutil.Process(adb_pid).memory_info().rss / 1e6),
            }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measure virtual phones behind one adb server.")
    parser.add_argument("--phones", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--threads", type=int, default=16)
    given = parser.parse_args()
    print(json.dumps(measure(given.phones, given.seconds, given.threads)))
    return 0


if __name__ == "__main__":
    run_command(main)
