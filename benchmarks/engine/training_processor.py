"""Processor seconds of an epoch of training, where others load the machine: a network on one API, or in PyTorch.

    python -m benchmarks.engine.training_processor --api opencl [--network classifier_784] [--samples 6400]

`--api torch` runs PyTorch with `--threads` threads. The time of user and system of all epochs less that of the first,
over their number, so that set-up, compilation and the first touch of memory are left out. Prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.training import BATCH, data_of, training_of
from device_agent.build import binary
from kernels.frontend.networks import NETWORKS
from kernels.options import Options
from kernels.training import compile_training


def used(who: int) -> float:
    """Seconds of the processor until now."""
    spent = resource.getrusage(who)
    return spent.ru_utime + spent.ru_stime


def ours(arguments: argparse.Namespace, epochs: int) -> float:
    """Return the processor seconds of an agent that trains so many epochs of all layers together."""
    graph = NETWORKS[arguments.network](1, BATCH)
    training = replace(training_of(arguments.network, arguments.samples, epochs), pretrain_epochs=0)
    training = replace(training, updates=arguments.updates, steps=arguments.steps)
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
        agent = Agent(arguments.agent or binary(), Path(cache))
        facts = agent.devices(arguments.api)[0]
        bundle = compile_training(graph, training, Options(arguments.api), limits_of(facts))
        data, start = data_of(graph, arguments.samples), used(resource.RUSAGE_CHILDREN)
        agent.train(bundle, data, device=facts["device_name"], threads=arguments.threads)
        return used(resource.RUSAGE_CHILDREN) - start


def torch_s(arguments: argparse.Namespace, epochs: int) -> float:
    """Return the processor seconds of PyTorch, eager, on the host's cores."""
    import torch

    from benchmarks.engine.torch_training import Way, epochs_of
    from kernels.training.stages import stages_of

    torch.set_num_threads(arguments.threads or os.cpu_count() or 1)
    graph = NETWORKS[arguments.network](1, BATCH)
    training = replace(training_of(arguments.network, arguments.samples, epochs), pretrain_epochs=0)
    data, (stage,) = data_of(graph, arguments.samples), stages_of(graph, training)
    start = used(resource.RUSAGE_SELF)
    epochs_of(stage, training, data[graph.inputs[0]], data["labels"], Way("torch", "cpu"))
    return used(resource.RUSAGE_SELF) - start


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="classifier_784")
    parser.add_argument("--api", default="opencl", choices=("opencl", "vulkan", "cpu", "torch"))
    parser.add_argument("--samples", type=int, default=6400)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0: every core")
    parser.add_argument("--updates", default="device", choices=("device", "host"), help="who takes the weights' steps")
    parser.add_argument("--steps", default="auto", choices=("auto", "joined", "apart", "per_node"))
    parser.add_argument("--agent", type=Path, default=None, help="the native agent; default: the one built here")
    arguments = parser.parse_args()
    measure = torch_s if arguments.api == "torch" else ours
    one = measure(arguments, 1)
    epoch_s = (measure(arguments, arguments.epochs) - one) / (arguments.epochs - 1)
    told = {name: getattr(arguments, name) for name in ("api", "network", "samples", "updates", "steps")}
    print(json.dumps({**told, "threads": arguments.threads, "epoch_s": round(epoch_s, 4), "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    run_command(main)
