"""The dispatcher's cost for a request on phones, and whether a live run equals its simulation.

    python -m benchmarks.farm.serving overhead --phones 50 --rate 1000 --seconds 30 [-o raw.json]
    python -m benchmarks.farm.serving equal --phones 4 --seconds 40 --loads 0.3,0.5,0.7,0.9 [-o raw.json]

Virtual phones behind a private adb server, each with a resident agent that holds the times which it is asked for.
`overhead`: it holds nothing; what is told is from a request's intended arrival until the dispatcher has sent it or put
it into the line, and its work at the answer. `equal`: the same seed gives both runs the same arrivals and sizes; the
simulation is told by how much the dispatcher was late in the live run, and what requests and answers travelled.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.command_line import run_command
from benchmarks.farm.adb import adb_server, connect
from farm.serving import enrol_all
from orchestrator.queueing.live import run_live
from orchestrator.queueing.measures import measure
from orchestrator.queueing.requests import Run
from orchestrator.queueing.simulation import simulate
from orchestrator.queueing.spec import QueueingSpec, parse
from orchestrator.system.config import Settings
from virtual_phones.launch import start_phones
from workers.serving import AgentWire, Serving

A_PROCESS = 25
"""Virtual phones that one process plays."""
PROFILES = ("galaxy_s7", "nexus_5", "nexus_6p", "pixel_7")
"""One for each process: serial numbers follow from them."""
WARM_SHARE = 0.1
FIGURES = (("sojourn_s", "mean"), ("sojourn_s", "p50"), ("sojourn_s", "p99"), ("waiting_s", "mean"))


@contextlib.contextmanager
def resident_phones(count: int) -> Iterator[list[AgentWire]]:
    """Wires to so many virtual phones, all ready."""
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="serving-")))
        port, _ = stack.enter_context(adb_server(home))
        addresses: list[str] = []
        for first, profile in zip(range(0, count, A_PROCESS), PROFILES, strict=False):
            phones = start_phones(
                home / profile, [profile], count=min(A_PROCESS, count - first),
                key=home / ".android" / "adbkey.pub", ready_s=120,
            )  # fmt: skip
            addresses += stack.enter_context(phones).serials
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda address: connect(port, address), addresses))
        settings = Settings(state=home / "state", host="bench", adb_port=port)
        members = [member for member, _ in enrol_all(settings, addresses)]
        serving = stack.enter_context(Serving(members, [], None, settings, power_period_s=1.0))
        yield [each.wire for each in serving.residents if each.wire is not None]


def spec_of(phones: int, rate: float, seconds: float, service: dict[str, Any], **more: Any) -> QueueingSpec:
    """One class, one line."""
    data = {
        "name": "serving",
        "servers": [{"name": "phone", "count": phones, **more.pop("server", {})}],
        "classes": [{"name": "a", "arrivals": {"kind": "poisson", "rate": rate}, "service": service}],
        "duration": seconds,
        **more,
    }
    return parse(yaml.safe_dump(data | {"duration": f"{seconds} s"}), "serving")


def overhead(phones: int, rate: float, seconds: float) -> Iterator[dict[str, Any]]:
    """Null service."""
    spec = spec_of(phones, rate, seconds, {"kind": "fixed", "mean": "1 us"})
    with resident_phones(phones) as wires:
        is_ahead = ahead_of_others()
        cpu_s, before = time.process_time(), os.getloadavg()[0]
        run = run_live(spec, np.random.SeedSequence(1), wires).run
        cpu_s = time.process_time() - cpu_s
    rows = run.requests.between(WARM_SHARE * seconds, seconds)
    assert run.overhead_s is not None
    yield {
        "phones": phones,
        "real_time_class": is_ahead,
        "requests": len(run.requests),
        "carried_per_s": round(len(rows.done) / (seconds * (1 - WARM_SHARE)), 1),
        "overhead_ms": _parts_ms(run.overhead_s[int(WARM_SHARE * len(run.overhead_s)) :]),
        "travel_ms": _parts_ms(rows.column("travel_s")),
        "sojourn_ms": _parts_ms(rows.sojourn_s),
        "cpu_ms_a_request": round(1000 * cpu_s / len(run.requests), 4),
        "load_before": before,
        "load_after": os.getloadavg()[0],
        "doubts": list(run.doubts),
    }


def ahead_of_others() -> bool:
    """This thread, the dispatcher's, before phones and whatever else wants the cores; False where that is not allowed.

    By the real-time class: niceness counts within a session alone, where the kernel groups sessions.
    """
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(10))
    return os.sched_getscheduler(0) & os.SCHED_FIFO != 0


def equal(phones: int, loads: Sequence[float], seconds: float) -> Iterator[dict[str, Any]]:
    """A row for each load."""
    service = {"kind": "gamma", "mean": "50 ms", "cv": 0.7}
    with resident_phones(phones) as wires:
        is_ahead = ahead_of_others()
        for load in loads:
            spec = spec_of(phones, load * phones / 0.05, seconds, service)
            live = run_live(spec, np.random.SeedSequence(1), wires).run
            fed = as_found(spec, live)
            simulated = simulate(fed, np.random.SeedSequence(1))
            ideal = simulate(spec, np.random.SeedSequence(1))
            found = [_figures(spec, each) for each in (live, simulated, ideal)]
            yield {
                "load": load,
                "real_time_class": is_ahead,
                "requests": len(live.requests),
                "overhead_ms": round(1000 * fed.overhead, 4),
                "travel_ms": _parts_ms(live.requests.column("travel_s")),
                **{name: {"live": found[0][name], "simulated": found[1][name], "ideal": found[2][name],
                          "ratio": round(found[0][name] / found[1][name], 4)} for name in found[0]},
                "load_average": os.getloadavg()[0],
                "doubts": list(live.doubts),
            }  # fmt: skip


def as_found(spec: QueueingSpec, live: Run) -> QueueingSpec:
    """The spec with what the dispatcher and the way cost in a live run of it."""
    drawn = simulate(spec, np.random.SeedSequence(1)).requests
    rows = live.requests
    assert np.array_equal(drawn.column("intended"), rows.column("intended"))
    taken_s = rows.column("ended") - rows.column("started") - drawn.column("served_s")
    travel = {"kind": "samples", "values_s": [max(1e-9, float(each)) for each in taken_s]}
    late_s = float((rows.column("admitted") - rows.column("intended")).mean())
    data = spec.model_dump(mode="json", exclude_none=True)
    data["servers"][0]["travel"] = travel
    return QueueingSpec.model_validate({**data, "overhead": late_s})


def _figures(spec: QueueingSpec, run: Run) -> dict[str, float]:
    total = measure(spec, [run]).total
    return {f"{time}.{part}": round(getattr(getattr(total, time), part).value, 6) for time, part in FIGURES}


def _parts_ms(values_s: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    p50, p90, p99, p99_9 = np.quantile(values_s, [0.5, 0.9, 0.99, 0.999]) * 1000
    parts = {"mean": statistics.fmean(values_s) * 1000, "p50": p50, "p90": p90, "p99": p99, "p99_9": p99_9}
    return {name: round(float(value), 4) for name, value in parts.items()}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measure queueing experiments on virtual phones.")
    parser.add_argument("what", choices=("overhead", "equal"))
    parser.add_argument("--phones", type=int, default=None)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--loads", default="0.3,0.4,0.5,0.6,0.7,0.8,0.9")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.what == "overhead":
        rows = overhead(given.phones or 50, given.rate, given.seconds)
    else:
        rows = equal(given.phones or 4, [float(each) for each in given.loads.split(",")], given.seconds)
    kept = []
    for row in rows:
        print(json.dumps(row), flush=True)
        kept.append(row)
    if given.output:
        given.output.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    run_command(main)
