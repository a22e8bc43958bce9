"""The cost of handing out work that does nothing, for bare Celery, started as its documentation says."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from celery import Celery
from redis import Redis

from benchmarks.farm.scheduler_turn import private_redis

DONE, RAN_AT = "bench:done", "bench:ran_at"
LIMIT_S = 60.0


@dataclass(frozen=True)
class Peer:
    """`calls` of something that does nothing."""

    name: str
    calls: int
    calls_per_s: float
    alone_p50_ms: float
    """One at a time, from asking for it until it runs."""
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
