"""The parts of our set-up time, step by step (study P): cold, warm and cached, for each API.

    python -m benchmarks.engine.setup_steps --networks squeezenet_v1_1 --repeats 5 [-o raw.json] [--resume]

cold: every cache empty. warm: the driver's caches filled, ours empty. cached: ours filled, too. Each start is a process
of its own; medians over the repeats; `process` is what lies outside of the steps.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.command_line import run_command
from device_agent.build import build
from kernels.options import Backend

from .case import Case, make_case
from .contender import ContenderError
from .kept_rows import KeptRows, add_options, kept_rows
from .machine import describe_machine
from .ours import Ours
from .rounds import scratch

STATES = ("cold", "warm", "cached")
APIS: tuple[Backend, ...] = ("opencl", "vulkan", "cpu")

Steps = Mapping[str, float]
"""Step -> ms."""


def start(ours: Ours, case: Case, caches: Path, state: str) -> Steps:
    """One start in this state; the steps of its set-up. Raises ContenderError."""
    if state == "cold":
        shutil.rmtree(caches, ignore_errors=True)
    elif state == "warm":
        shutil.rmtree(caches / "agent", ignore_errors=True)
    caches.mkdir(parents=True, exist_ok=True)
    return ours.open(case, caches).steps_ms


def medians(starts: Sequence[Steps]) -> dict[str, float]:
    """Return each step's median, in the order of the first start; a step that a start lacks took no time there."""
    names = dict.fromkeys(name for steps in starts for name in steps)
    return {name: median(steps.get(name, 0.0) for steps in starts) for name in names}


def table(network: str, api: str, found: Mapping[str, Steps]) -> str:
    """Markdown: a row a step, a column a state."""
    names = dict.fromkeys(name for steps in found.values() for name in steps)
    lines = [f"### {network}, {api}", "", f"| step, ms | {' | '.join(found)} |", f"|---|{'--:|' * len(found)}"]
    lines += [f"| {name} | {' | '.join(_ms(steps.get(name, 0.0)) for steps in found.values())} |" for name in names]
    totals = " | ".join(_ms(sum(steps.values())) for steps in found.values())
    return "\n".join([*lines, f"| **in all** | {totals} |"])


def _ms(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="squeezenet_v1_1")
    parser.add_argument("--apis", default=",".join(APIS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="", help="words of the GPU's name")
    parser.add_argument("--binary", type=Path, help="native agent")
    parser.add_argument("--spirv-cache", type=Path)
    add_options(parser)
    arguments = parser.parse_args()
    binary = arguments.binary or build()
    kept = kept_rows(arguments, {"machine": describe_machine(), "repeats": arguments.repeats}, same=("repeats",))
    with scratch() as folder:
        for network in arguments.networks.split(","):
            case = make_case(network, folder / "cases")
            for api in (each for each in APIS if each in arguments.apis.split(",")):
                spirv = arguments.spirv_cache or folder / "spirv"
                ours = Ours(api, api, binary, folder / network / api, spirv_cache=spirv, device=arguments.device)
                try:
                    _measure(ours, case, folder / "caches" / api, arguments.repeats, kept)
                except ContenderError as e:
                    print(f"{network}, {api}: {e}", file=sys.stderr)
                    continue
                rows = kept.of(network=network, api=api)
                found = {state: medians([row["starts"][state] for row in rows]) for state in STATES}
                print(table(network, api, found) + "\n", flush=True)
    return 0


def _measure(ours: Ours, case: Case, caches: Path, repeats: int, kept: KeptRows) -> None:
    """Measure what is not kept yet, a row a repeat: its cold start leaves nothing of an earlier one."""
    for repeat in range(repeats):
        key = {"network": case.network, "api": ours.backend, "repeat": repeat}
        if kept.has(**key):
            continue
        starts = {state: start(ours, case, caches, state) for state in STATES}
        kept.add({**key, "starts": starts})
        print(f"{case.network}, {ours.backend}: {repeat + 1} of {repeats}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_command(main)
