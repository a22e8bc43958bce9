"""The truth of a simulation with learnt heat: does a phone under sustained load do so, and how far is it to be trusted?

    python -m benchmarks.farm.learnt_heat physics [-o raw.json]
    python -m benchmarks.farm.learnt_heat live --seconds 150 [-o raw.json]

Heat is learnt from one block of sustained load of a virtual phone, whose heat capacities are a few percent of a real
one's, so that it warms up in minutes. Then the same arrivals are served by the simulation and by the phone's physics:
its clock falls in the middle of an inference, too. `physics`: in computed time. `live`: in real time, by the dispatcher
of live runs and a phone for each load that answers when its physics is done, so that no load of this host slows it.

told   true and simulated mean and p99 of the sojourn, the span that the simulation tells, whether it holds the true
       one, and the doubts
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command_line import run_command
from orchestrator.model.event import Served
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.telemetry import Reading
from orchestrator.queueing.experiment import measure_runs, run_simulated
from orchestrator.queueing.learnt import learn_body
from orchestrator.queueing.live import run_live
from orchestrator.queueing.requests import Run
from orchestrator.queueing.spec import Heat, QueueingSpec
from tests.unit.energy.scenarios import record_of
from virtual_phones.hardware.physics import State, clock_cap, initial_state, step
from virtual_phones.profile import Profile, load_profile
from virtual_phones.simulation import Course
from virtual_phones.simulation import simulate as block

LOADS = {"physics": np.arange(0.3, 0.96, 0.05), "live": (0.5, 0.65, 0.75)}
"""The loads, as shares of what the cool phone can serve."""
LIGHTER = {"physics": 0.2, "live": 0.05}
"""The share of a phone's heat capacities."""
LOAD_S, IDLE_S = 1800.0, 300.0
"""The times of the block, on a phone with all of its heat capacity: more than twice the time constant."""
INFERENCE_S = 0.1
SECONDS = 600.0
PHONES = {"physics": ("pixel_7", "galaxy_s7", "nexus_6p"), "live": ("pixel_7",)}
FIGURES: dict[str, Callable[[Any], float]] = {
    "mean": lambda sojourn_s: float(np.mean(sojourn_s)), "p99": lambda sojourn_s: float(np.quantile(sojourn_s, 0.99)),
}  # fmt: skip
NS_PER_S = 1e9


def profile_of(name: str, lighter: float, higher_c: float) -> Profile:
    """`higher_c`: by how much its steps of throttling lie higher."""
    profile = load_profile(name)
    thermal = profile.thermal
    changed: dict[str, Any] = {
        each: lighter * getattr(thermal, each) for each in ("die_j_per_k", "skin_j_per_k", "battery_j_per_k")
    }
    changed["status_skin_c"] = tuple(round(each + higher_c, 2) for each in thermal.status_skin_c)
    return profile.model_copy(update={"thermal": thermal.model_copy(update=changed)})


def heat_of(profile: Profile, lighter: float, load_s: float) -> Heat:
    course = Course(idle_s=IDLE_S * lighter, warmup_s=0.0, load_s=load_s * lighter, inference_s=INFERENCE_S)
    heat = learn_body("phone", "block", "net", [record_of(block(profile, course, seed=1), profile)]).heat
    assert heat is not None
    return heat


class Phone:
    """The body of a phone, and how long an inference takes it."""

    def __init__(self, profile: Profile) -> None:
        rested = step(profile, initial_state(profile), 0.0, 1800.0)
        self._profile = profile
        self.state: State = replace(rested, time_s=0.0)

    def serve(self, at_s: float) -> float:
        """Return when an inference is done that is asked for at a time, seconds."""
        profile = self._profile
        state, left_s = step(profile, self.state, 0.0, max(0.0, at_s - self.state.time_s)), INFERENCE_S
        while left_s > 1e-9:
            clock = clock_cap(profile.thermal, state.skin_c)
            spent_s = min(left_s / clock, 0.02)
            state = step(profile, state, 1.0, spent_s)
            left_s -= spent_s * clock
        self.state = state
        return state.time_s


class PhoneWire:
    """A phone that answers, in real time, when its physics has done what it was asked for."""

    serial = "physics"
    readings: Sequence[Reading] = ()
    gauge: GaugeCalibration | None = None

    def __init__(self, phone: Phone) -> None:
        self._phone, self._began = phone, time.monotonic()
        self._ears, self._mouth = socket.socketpair()
        self._asked: queue.Queue[tuple[int, float] | None] = queue.Queue()
        self._done: queue.Queue[Served] = queue.Queue()
        threading.Thread(target=self._live, daemon=True).start()

    def _live(self) -> None:
        while (asked := self._asked.get()) is not None:
            number, at_s = asked
            end_s = self._phone.serve(at_s)
            time.sleep(max(0.0, self._began + end_s - time.monotonic()))
            window = {"start_ns": round(at_s * NS_PER_S), "end_ns": round(end_s * NS_PER_S)}
            self._done.put(Served.model_validate({"seq": 0, "t_ns": 0, "id": number, "status": "ok", **window}))
            self._mouth.send(b".")

    def fileno(self) -> int:
        return self._ears.fileno()

    def ask(self, number: int, **_: object) -> None:
        self._asked.put((number, time.monotonic() - self._began))

    def answers(self) -> list[Served]:
        self._ears.recv(1)
        return [self._done.get()]

    def shut(self) -> None:
        self._asked.put(None)


def spec_of(heat: Heat, load: float, seconds: float, **more: Any) -> QueueingSpec:
    service = {"kind": "fixed", "mean": f"{INFERENCE_S} s"}
    arrivals = {"kind": "poisson", "rate": load / INFERENCE_S}
    data = {
        "name": "sustained",
        "servers": [{"name": "phone", "heat": heat.model_dump(), **more.pop("server", {})}],
        "classes": [{"name": "a", "arrivals": arrivals, "service": service}],
        "warm_up": "none",
        "duration": f"{seconds} s",
        **more,
    }
    return QueueingSpec.model_validate(data)


def true_run(spec: QueueingSpec, phone: Phone, how: str) -> Run:
    """Live, or with the same arrivals in computed time."""
    if how == "live":
        return run_live(spec, np.random.SeedSequence(spec.seed).spawn(1)[0], [PhoneWire(phone)]).run
    run = run_simulated(spec)[0]
    run.requests.column("ended")[:] = [phone.serve(at) for at in run.requests.column("intended").tolist()]
    return run


def row(how: str, name: str, higher_c: float, load: float, seconds: float, block_s: float) -> dict[str, Any]:
    profile = profile_of(name, LIGHTER[how], higher_c)
    heat = heat_of(profile, LIGHTER[how], block_s)
    true = true_run(spec_of(heat, load, seconds), Phone(profile), how).requests
    travel = {"kind": "samples", "values_s": np.maximum(1e-9, true.column("travel_s")).tolist()}
    late_s = float((true.column("admitted") - true.column("intended")).mean())
    more = {"overhead": f"{late_s} s", "server": {"travel": travel}} if how == "live" else {}
    spec = spec_of(heat, load, seconds, **more)
    runs = [run_simulated(each) for each in (spec, *spec.others())]
    told: dict[str, Any] = {"phone": name, "higher_c": higher_c, "load": round(load, 2), "requests": len(true)}
    for figure, of in FIGURES.items():
        was, (first, *others) = of(true.sojourn_s), [of(run.requests.sojourn_s) for (run,) in runs]
        span = (min(first, *others), max(first, *others))
        told[figure] = {
            "true_s": round(was, 4), "simulated_s": round(first, 4), "off": round(first / was - 1, 4),
            "span_s": [round(each, 4) for each in span], "held": 0.99 * span[0] <= was <= 1.01 * span[1],
        }  # fmt: skip
    if how == "live":
        told |= {
            "late_ms": round(1000 * late_s, 2),
            "travel_ms": round(1000 * float(true.column("travel_s").mean()), 2),
        }
    return {**told, "doubts": list(measure_runs(spec, runs[0]).doubts), "load_average": os.getloadavg()[0]}


def rows(how: str, seconds: float, block_s: float, jobs: int) -> Iterator[dict[str, Any]]:
    shifts = (0.0, 0.3) if how == "physics" else (0.0,)
    phones = [(by_c, name) for by_c in shifts for name in PHONES[how]]
    cells = [(how, name, by_c, float(load), seconds, block_s) for by_c, name in phones for load in LOADS[how]]
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(row, *zip(*cells, strict=True))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("how", choices=tuple(LOADS))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--block", type=float, default=LOAD_S, help="load of the block, s of a phone's whole capacity")
    parser.add_argument("--jobs", type=int, default=None, help="processes; default: 1, live one for each load")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    kept = []
    jobs = given.jobs or (len(LOADS["live"]) if given.how == "live" else 1)
    for told in rows(given.how, given.seconds, given.block, jobs):
        print(json.dumps(told), flush=True)
        kept.append(told)
    if given.output:
        given.output.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    run_command(main)
