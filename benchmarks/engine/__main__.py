"""Ours and every installed peer on one device in one run: verified, cold, warm and steady; raw JSON and a table.

    python -m benchmarks.engine --networks squeezenet_v1_1 --contenders "ours,ncnn,onnxruntime" --threads 1,2

    python -m benchmarks.engine --onnx FOLDER --contenders "ours CPU,onnxruntime" --threads 1,2

The second one takes the networks that `python -m benchmarks.engine.zoo.files` wrote into FOLDER, from the smallest file
on; of the peers those take part that read ONNX.

Every contender runs in a process of its own; a crash is a row. Results are written after each network.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import sys
from pathlib import Path

from benchmarks.command_line import run_command
from device_agent.build import build
from kernels.errors import CompileError
from kernels.frontend.networks import NETWORKS
from kernels.tuning import Database

from .agent_process import Agent
from .case import Case, make_case, model_file, read_case
from .contender import ContenderError
from .entrants import Setting, entrants, with_tuned
from .machine import describe_machine
from .ours import find_device
from .progress import Progress
from .registry import CONTENDERS, find
from .results import Results, read
from .rounds import TOLERANCE, Effort, measure, scratch
from .table import render

PRECISIONS = tuple(TOLERANCE)
RESULTS = Path(__file__).parents[1] / "results"
NETWORK_NAMES = "squeezenet_v1_1,mobilenet_v1,mobilenet_v2,alexnet,googlenet,resnet18,resnet50,inception_v3,vgg16,lenet"


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = found.add_argument
    add("--networks", default="", help=f"names with commas; default: those of --onnx, or {NETWORK_NAMES}")
    add("--onnx", type=Path, help="folder of networks as files (`zoo.files`), in the place of built-in ones")
    add("--contenders", default="", help=f"names or parts of names with commas, of: {', '.join(CONTENDERS)}")
    add("--threads", default="0", help="threads of the CPU engines, a row each, with commas; 0: every core")
    add("--samples", type=int, default=5, help="samples of a turn, at least (2 or more)")
    add("--seconds", type=float, default=1.0, help="seconds of a turn, at least")
    add("--warmup", type=float, default=0.3, help="seconds of warm-up before each turn")
    add("--rounds", type=int, default=4, help="turns of each contender, in alternating order")
    add("--no-cold", action="store_true", help="leave the start with empty caches away")
    add("--device", default="", help="words of the GPU's name; default: each engine's own, which must agree")
    add("--seed", type=int, default=1, help="seed of the weights")
    add("--batch", type=int, default=1)
    add("--precision", choices=PRECISIONS, default="fp32", help="fp16: weights and activations stored in half, on GPUs")
    add("--tune", type=float, default=0, help="seconds of tuning ours for each network and API, a row of its own")
    add("--tuning", type=Path, help="file of what tuning found, read and added to; default: one of this run")
    add("--caches", type=Path, help="folder of the contenders' caches, kept; default: one of this run")
    add("--binary", type=Path, help="native agent; default: built for this machine where it is missing or older")
    add("--spirv-cache", type=Path, help="folder of compiled shaders; default: one of this run")
    add("-o", "--out", type=Path, help="JSON file; default: benchmarks/results/<date>-<device>-engine.json")
    add("--resume", action="store_true", help="keep the networks that the JSON file has, measure the others")
    add("--table", type=Path, help="print the table of this JSON file and measure nothing")
    return found


def main() -> int:
    """Measure and print; status 2 for an option that does not fit."""
    arguments = parser().parse_args()
    if arguments.table:
        print(render(read(arguments.table)))
        return 0
    if min(arguments.samples - 1, arguments.rounds) < 1:
        print("error: give --samples 2 or more and --rounds 1 or more", file=sys.stderr)
        return 2
    try:
        names, networks = find(arguments.contenders), _networks(arguments)
    except KeyError as e:
        print(f"error: {e.args[0]}", file=sys.stderr)
        return 2
    binary = arguments.binary or build()
    out = arguments.out or RESULTS / f"{datetime.date.today()}-{_device_word(binary, arguments.device)}-engine.json"
    results = Results(machine=describe_machine(), options=_options(arguments))
    if arguments.resume and out.is_file():
        results = results.model_copy(update={"networks": read(out).networks})
    if arguments.onnx:
        names = [name for name in names if CONTENDERS[name].onnx or CONTENDERS[name].kind == "ours"]
    known = {each.network for each in results.networks}
    left = [network for network in networks if network not in known]
    progress = Progress(len(left))
    effort = Effort(
        arguments.rounds, arguments.seconds, arguments.samples, arguments.warmup, cold=not arguments.no_cold,
        tolerance=TOLERANCE[arguments.precision],
    )  # fmt: skip
    with scratch() as folder:
        setting = _setting(arguments, binary, folder)
        for index, network in enumerate(left):
            progress.network(index, network)
            try:
                case = _case(network, names, arguments, folder / "cases")
            except CompileError as e:
                print(f"error: {e}", file=sys.stderr)
                return 2
            found = entrants(names, setting, folder / "work")
            if arguments.tune:
                found = with_tuned(found, case, setting, arguments.tune, folder / "work", progress)
            measured = measure(case, found.contenders, effort, setting.caches, progress)
            measured = measured.model_copy(update={"rows": [*measured.rows, *found.rows]})
            results = results.with_network(measured)
            results.write(out)
            shutil.rmtree(folder / "work", ignore_errors=True)
            shutil.rmtree(folder / "cases", ignore_errors=True)
    progress.end()
    print(render(results))
    print(f"raw results: {out}")
    return 0


def _networks(arguments: argparse.Namespace) -> list[str]:
    names = [name.strip() for name in arguments.networks.split(",") if name.strip()]
    if arguments.onnx:
        files = sorted(arguments.onnx.glob("*.onnx"), key=lambda file: file.stat().st_size)
        names = names or [file.stem for file in files]
        if absent := [name for name in names if model_file(arguments.onnx, name) not in files]:
            raise KeyError(f"{arguments.onnx} has no network {absent[0]!r}")
        return names
    names = names or NETWORK_NAMES.split(",")
    if unknown := [name for name in names if name not in NETWORKS]:
        raise KeyError(f"no network is called {unknown[0]!r}; there are: {', '.join(NETWORKS)}")
    return names


def _case(network: str, contenders: list[str], arguments: argparse.Namespace, folder: Path) -> Case:
    if arguments.onnx:
        return read_case(arguments.onnx, network)
    with_onnx = any(CONTENDERS[name].onnx for name in contenders)
    return make_case(network, folder, seed=arguments.seed, batch=arguments.batch, onnx=with_onnx)


def _setting(arguments: argparse.Namespace, binary: Path, folder: Path) -> Setting:
    cores = len(os.sched_getaffinity(0))
    return Setting(
        binary=binary,
        device=arguments.device,
        threads=tuple(int(count) or cores for count in arguments.threads.split(",")),
        spirv_cache=arguments.spirv_cache or folder / "spirv",
        caches=arguments.caches or folder / "caches",
        database=Database(arguments.tuning),
        precision=arguments.precision,
    )


def _options(arguments: argparse.Namespace) -> dict[str, str | int | float | bool | list[str] | None]:
    """Return options for the record: of files their names, since results are shared and folders one machine's."""
    return {key: value.name if isinstance(value, Path) else value for key, value in vars(arguments).items()}


def _device_word(binary: Path, device: str) -> str:
    """Return a word for the GPU, else for the CPU, for a file's name."""
    agent = Agent(binary, Path())
    for api in ("vulkan", "opencl", "cpu"):
        try:
            name = find_device(agent, api, device)["device_name"]
        except ContenderError:
            continue
        return re.sub(r"[^a-z0-9]+", "-", name.partition("(")[0].lower()).strip("-")
    return "unknown"


if __name__ == "__main__":
    run_command(main)
