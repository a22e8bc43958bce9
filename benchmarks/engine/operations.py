"""Study P: from which size on does the GPU pay? Four operations over their sizes, our CPU backend beside the GPU.

    python -m benchmarks.engine.operations [--apis opencl,vulkan] [--device NAME] [--sizes matmul=64:1024,add=256:65536]
                                           [-o raw.json]

Every size is measured on every backend in turn, each turn a process of the agent. A result is compared with double
precision before anything is timed; what is wrong or does not run is said and ends with exit status 1. Needs numpy,
pydantic and the built agent; for Vulkan glslangValidator, or a folder of compiled shaders (`--spirv-cache`).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks.command_line import run_command
from kernels.frontend.networks import FAMILIES
from kernels.options import Backend

from .kept_rows import write_whole
from .machine import describe_machine
from .operation_runs import Contest, Host, Measured
from .operation_tables import crossovers, steps, times

AGENT = Path("device_agent/build") / platform.machine() / "pocketfarm-agent"
GPUS: tuple[Backend, ...] = ("opencl", "vulkan")
SIZES = "matmul=16:1024,conv3x3=8:256,transpose=16:2048,add=256:4194304"


def sizes_of(words: str) -> dict[str, list[int]]:
    """`matmul=64:256,add=256`: those built in from the first to the second, or one. Raises ValueError."""
    found = {}
    for part in words.split(","):
        name, _, limits = part.strip().partition("=")
        if name not in FAMILIES:
            raise ValueError(f"no operation is called {name!r}; there are: {', '.join(FAMILIES)}")
        known = FAMILIES[name].sizes
        first, _, last = limits.partition(":")
        try:
            low, high = (int(first), int(last or first)) if limits else (known[0], known[-1])
        except ValueError:
            raise ValueError(f"{part!r}: write sizes as `{name}=64:1024`") from None
        found[name] = [size for size in known if low <= size <= high]
        if not found[name]:
            raise ValueError(f"{part!r}: no such size; {name} has: {', '.join(map(str, known))}")
    return found


def apis_of(words: str) -> list[Backend]:
    """GPU interfaces by name, and the CPU last. Raises ValueError."""
    names = [word.strip() for word in words.split(",")]
    if unknown := [name for name in names if name not in GPUS]:
        raise ValueError(f"no GPU interface is called {unknown[0]!r}; there are: {', '.join(GPUS)}")
    return [*(api for api in GPUS if api in names), "cpu"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apis", default=",".join(GPUS), help="GPU interfaces; the CPU always runs beside them")
    parser.add_argument("--device", default="", help="words of the GPU's name; default: each interface's first")
    parser.add_argument("--sizes", default=SIZES, help=f"operations and ranges; default: {SIZES}")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU backend; default: as many as cores")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each backend at each size")
    parser.add_argument("--seconds", type=float, default=0.1, help="of samples, about, a turn")
    parser.add_argument("--binary", type=Path, default=AGENT, help="native agent")
    parser.add_argument("--spirv-cache", type=Path, help="folder of compiled shaders")
    parser.add_argument("-o", "--output", type=Path, help="JSON file")
    return parser


def main() -> int:
    """Measure and print; 1 where something failed, 2 for arguments that mean nothing."""
    parser = _parser()
    arguments = parser.parse_args()
    try:
        sizes, apis = sizes_of(arguments.sizes), apis_of(arguments.apis)
    except ValueError as e:
        parser.error(str(e))
    if not arguments.binary.exists():
        parser.error(f"{arguments.binary}: no agent; build it, or give --binary")
    machine, found = describe_machine(), list[Measured]()
    with tempfile.TemporaryDirectory(prefix="operations-") as temporary:
        folder = Path(temporary)
        spirv = arguments.spirv_cache or folder / "spirv"
        host = Host(arguments.binary.resolve(), folder, spirv, arguments.device, arguments.threads)
        for operation, size in ((name, size) for name, each in sizes.items() for size in each):
            measured = Contest(host, operation, size, apis).measure(max(1, arguments.rounds), arguments.seconds)
            found += measured
            words = [f"{one.api} {one.failed or f'{one.ms:.4g} ms'}" for one in measured]
            print(f"{operation} {size}: {', '.join(words)}", file=sys.stderr, flush=True)
            if arguments.output:
                told = {"machine": machine, "threads": arguments.threads, "found": [one.raw() for one in found]}
                write_whole(arguments.output, json.dumps(told, indent=1) + "\n")
    for operation in sizes:
        print(times(operation, [one for one in found if one.operation == operation]) + "\n")
    print(f"{crossovers(found)}\n\n{steps(found)}")
    return 1 if any(one.failed for one in found) else 0


if __name__ == "__main__":
    run_command(main)
