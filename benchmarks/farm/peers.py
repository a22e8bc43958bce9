"""The cost of handing out work that does nothing, for others: bare Celery, and TVM's RPC tracker with its servers.

Each is started as its documentation says, on this machine and loopback alone, and ended afterwards.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

from celery import Celery
from redis import Redis

from benchmarks.farm.scheduler_turn import private_redis

SERVERS = 8
DONE, RAN_AT = "bench:done", "bench:ran_at"
LIMIT_S = 60.0


@dataclass(frozen=True)
class Peer:
    """`calls` of something that does nothing."""

    name: str
    calls: int
    calls_per_s: float
    alone_p50_ms: float
    """One at a time, from asking for it until it runs (Celery) or has run (TVM)."""
    what: str


def celery_rate(folder: Path, calls: int) -> Peer:
    """A no-op task on a Redis of its own, a worker with a pool of threads, as the farm has it."""
    with private_redis(folder) as url, Redis.from_url(url.replace("redis+socket", "unix")) as redis:
        words = ["-A", "benchmarks.farm.peers:made", "worker", "-P", "threads", "-c", "32", "-l", "error"]
        own = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-b", url]
        worker = subprocess.Popen([sys.executable, "-m", "celery", "-b", url, *words, *own[:-2]])
        try:
            app = Celery(broker=url)
            times = []
            for _ in range(100):
                began = time.monotonic()
                app.send_task("noop", ignore_result=True)
                redis.blpop(RAN_AT, timeout=LIMIT_S)
                times.append(time.monotonic() - began)
            redis.delete(DONE)
            began = time.monotonic()
            for _ in range(calls):
                app.send_task("count", ignore_result=True)
            while int(redis.get(DONE) or 0) < calls:
                if time.monotonic() - began > LIMIT_S:
                    raise TimeoutError(f"Celery ran {redis.get(DONE)!r} of {calls} in {LIMIT_S:g} s")
                time.sleep(0.005)
            took_s = time.monotonic() - began
        finally:
            worker.terminate()
            worker.wait()
    p50 = statistics.median(times[10:]) * 1e3
    return Peer("Celery", calls, round(calls / took_s), round(p50, 2), "send_task, and a task that counts in Redis")


made = Celery()


@made.task(name="noop", ignore_result=True)  # type: ignore[untyped-decorator]
def noop() -> None:
    _redis().rpush(RAN_AT, 1)


@made.task(name="count", ignore_result=True)  # type: ignore[untyped-decorator]
def count() -> None:
    _redis().incr(DONE)


def _redis() -> Redis:
    """A connection of the worker to its own broker."""
    global _client
    if _client is None:
        _client = Redis.from_url(str(made.conf.broker_url).replace("redis+socket", "unix"))
    return _client


_client: Redis | None = None


_TRACKER = """
    import json, statistics, subprocess, sys, time
    import tvm
    from tvm import rpc
    from tvm.rpc.tracker import Tracker
    calls, servers = int(sys.argv[1]), int(sys.argv[2])
    tracker = Tracker(host="127.0.0.1", port=19190, port_end=19290, silent=True)
    words = [sys.executable, "-m", "tvm.exec.rpc_server", "--host", "127.0.0.1", "--key", "phone", "--silent",
             "--port", "19300", "--port-end", "19400", "--tracker", f"127.0.0.1:{tracker.port}"]
    running = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(servers)]
    try:
        desk = rpc.connect_tracker("127.0.0.1", tracker.port)
        while len([line for line in desk.text_summary().splitlines() if "phone" in line]) < servers:
            time.sleep(0.1)
        def once():
            session = desk.request("phone", session_timeout=30)
            session.cpu(0).exist
        times = []
        for _ in range(max(30, calls)):
            began = time.monotonic()
            once()
            times.append(time.monotonic() - began)
        warm = times[10:]
        print(json.dumps({"version": tvm.__version__, "p50_ms": 1e3 * statistics.median(warm),
                          "per_s": len(warm) / sum(warm), "calls": len(warm)}))
    finally:
        for each in running:
            each.terminate()
        for each in running:
            each.wait()
        tracker.terminate()
"""


def tracker_rate(python: str, calls: int) -> Peer:
    """Request a device from a tracker with eight servers, ask it one thing, give it back: one client, as its users do.
    `python`: an interpreter that has apache-tvm, tornado, psutil and cloudpickle."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "tracker.py"
        script.write_text(textwrap.dedent(_TRACKER))
        done = subprocess.run(
            [python, str(script), str(calls), str(SERVERS)], capture_output=True, text=True, timeout=300, check=True
        )
    found = json.loads(done.stdout.splitlines()[-1])
    what = (
        f"request, ask whether its CPU is there, give back; version {found['version']}, {SERVERS} servers, one client"
    )
    return Peer("TVM RPC tracker", found["calls"], round(found["per_s"], 1), round(found["p50_ms"], 2), what)
