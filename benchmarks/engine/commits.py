"""Networks on the CPU backend in turns with another commit's compiler and agent: what a change costs or gains.

    python -m benchmarks.engine.commits --before REVISION [--onnx FOLDER] [--networks resnet18,lenet] -o raw.json

The other commit is checked out and built beside this one, and removed at the end. Each turn is a process of an agent
with its own commit's plan; the order alternates. Both get the same input, and their outputs are compared. The ratio
of a network is the median of its rounds' ratios; below 1 this tree takes less time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, AgentError
from benchmarks.engine.machine import describe_machine
from kernels.plan.model import Plan, Port

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = (
    "lenet", "autoencoder_784", "cifar10_quick", "squeezenet_v1_0", "squeezenet_v1_1", "mobilenet_v1", "mobilenet_v2",
    "alexnet", "caffenet", "googlenet", "resnet18", "resnet50", "inception_v3", "vgg16", "pynet_level_5",
)  # fmt: skip
WORST = 1e-3
"""The largest difference of two commits' outputs, relative to the largest number."""


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.engine.commits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = found.add_argument
    add("--before", required=True, help="the other commit, as git names it")
    add("--networks", default=",".join(NETWORKS), help="built-in ones, with commas; empty: none; default: %(default)s")
    add("--onnx", type=Path, help="folder of networks as files (`zoo.files`), beside the built-in ones")
    add("--threads", type=int, default=2)
    add("--rounds", type=int, default=4)
    add("--seconds", type=float, default=0.5, help="of a turn, at least")
    add("-o", "--output", type=Path, help="raw results, as JSON")
    return found


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """Another commit of this repository with its agent, in a folder that is removed afterwards."""
    subprocess.run(["git", "worktree", "add", "--detach", folder, revision], cwd=ROOT, check=True, capture_output=True)
    try:
        subprocess.run([sys.executable, "-m", "device_agent.build"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        yield folder
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


def compiled(tree: Path, network: str, threads: int, folder: Path) -> Plan:
    """Compile by a tree's own compiler, and read the ports: the rest may have another commit's form."""
    farm = "from farm.cli import run; run()"
    argv = [sys.executable, "-c", farm, "plan", network, "--backend", "cpu", "--threads", str(threads)]
    done = subprocess.run([*argv, "-o", folder, "--json"], cwd=tree, capture_output=True, text=True)
    if done.returncode:
        raise AgentError(f"{network} in {tree}: {done.stderr[-400:]}")
    read = json.loads((folder / "plan.json").read_text())
    ports = {end: tuple(Port.model_validate(port) for port in read[end]) for end in ("inputs", "outputs")}
    return cast("Plan", SimpleNamespace(**ports))


def compared(trees: dict[str, Path], network: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the medians of each tree's turns in ms, and how far the outputs are apart."""
    plans = {side: compiled(tree, network, options.threads, folder / side) for side, tree in trees.items()}
    agents = {side: Agent(_agent_of(tree), folder / "cache") for side, tree in trees.items()}
    rng = np.random.default_rng()
    inputs = {port.name: rng.standard_normal(port.shape) for port in plans["now"].inputs}
    medians: dict[str, list[float]] = {side: [] for side in trees}
    outputs: dict[str, list[np.ndarray[Any, Any]]] = {}
    for turn in range(options.rounds):
        for side in (*trees,) if turn % 2 else (*reversed(trees),):
            ran = agents[side].run_stored(
                plans[side], folder / side, inputs, warmup=3, samples=5, load_ms=int(1000 * options.seconds),
                threads=options.threads,
            )  # fmt: skip
            medians[side].append(median(ran.samples_ms))
            outputs[side] = list(ran.outputs.values())
    pairs = zip(outputs["now"], outputs["before"], strict=True)
    apart = max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs)
    ratios = [now / before for now, before in zip(medians["now"], medians["before"], strict=True)]
    return {"network": network, "ms": medians, "ratio": median(ratios), "apart": apart}


def _agent_of(tree: Path) -> Path:
    return next((tree / "device_agent" / "build").glob("x86_64/pocketfarm-agent"))


def main() -> int:
    """Run the command; 1 where a network fails, or its outputs differ."""
    options = parser().parse_args()
    files = sorted(options.onnx.resolve().glob("*.onnx"), key=lambda file: file.stat().st_size) if options.onnx else []
    networks, found, status = [*filter(None, options.networks.split(",")), *map(str, files)], [], 0
    subprocess.run([sys.executable, "-m", "device_agent.build"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    with (
        tempfile.TemporaryDirectory(prefix="commits-") as temporary,
        checked_out(options.before, Path(temporary, "before")) as before,
    ):
        for number, network in enumerate(networks):
            try:
                row = compared({"now": ROOT, "before": before}, network, options, Path(temporary, str(number)))
            except AgentError as e:
                row = {"network": network, "failed": str(e)}
            status |= "failed" in row or row["apart"] > WORST
            found.append(row)
            print(_words(row), flush=True)
    ratios = [row["ratio"] for row in found if "ratio" in row]
    if ratios:
        print(f"{len(ratios)} networks: median {median(ratios):.3f}, least {min(ratios):.3f}, most {max(ratios):.3f}")
    if options.output:
        raw = {"machine": describe_machine(), "before": options.before, "threads": options.threads, "rows": found}
        options.output.write_text(json.dumps(raw, indent=1))
    return status


def _words(row: dict[str, Any]) -> str:
    name = Path(row["network"]).stem
    if "failed" in row:
        return f"{name:32} failed: {row['failed']}"
    now, before = (median(row["ms"][side]) for side in ("now", "before"))
    return f"{name:32} {now:9.3f} ms, before {before:9.3f}, ratio {row['ratio']:.3f}, apart {row['apart']:.1e}"


if __name__ == "__main__":
    run_command(main)
