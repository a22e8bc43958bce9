"""The rate of the simulation of queues, in requests a second: `python -m benchmarks.farm.queueing`."""

from __future__ import annotations

import json
import time

import numpy as np

from benchmarks.command_line import run_command
from orchestrator.queueing.simulation import simulate
from orchestrator.queueing.spec import QueueingSpec, parse

REQUESTS = 200_000
CASES = {
    "M/M/1": (1, "fifo"),
    "M/M/50": (50, "fifo"),
    "50, jsq": (50, "jsq"),
    "1000, two choices": (1000, "power_of_d"),
}


def spec_of(servers: int, policy: str) -> QueueingSpec:
    """A load of 0.7, service of 10 ms."""
    rate = 70 * servers
    return parse(
        f"name: speed\nservers: [{{name: s, count: {servers}}}]\npolicy: {{name: {policy}}}\n"
        f"classes: [{{name: a, arrivals: {{kind: poisson, rate: {rate}}}, "
        f"service: {{kind: exponential, mean: 10 ms}}}}]\nduration: {REQUESTS / rate} s\n",
        "speed",
    )


def main() -> None:
    """One row a case: requests a second of CPU time, and how much faster than real time."""
    for name, (servers, policy) in CASES.items():
        spec = spec_of(servers, policy)
        begin = time.process_time()
        count = len(simulate(spec, np.random.SeedSequence(1)).requests)
        taken = time.process_time() - begin
        row = {"case": name, "requests_per_s": round(count / taken), "times_real": round(spec.duration / taken, 1)}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_command(main)
