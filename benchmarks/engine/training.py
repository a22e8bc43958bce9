"""Epochs of training through the agent, beside PyTorch: study A's network, LeNet, CIFAR-10 quick.

    python -m benchmarks.engine.training --networks classifier_784 --api opencl,vulkan,cpu [--epochs 3] [-o raw.json]

Every stage first trains a few batches, whose weights are compared with the NumPy reference in double precision; what is
wrong is said and ends with exit status 1. Then `--epochs` epochs of each stage on `--samples` random images are timed:
ours from the agent's own samples, PyTorch's from the same stages, batches and rates, eagerly on the host's cores, and
where it finds CUDA there, eagerly and as a CUDA graph of one batch (TF32 off). Both have the whole set on the device.
The least of the epochs is the figure. Needs numpy and pydantic; without PyTorch there is no peer.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent, limits_of
from benchmarks.engine.machine import describe_machine
from device_agent.build import binary
from kernels.frontend.networks import NETWORKS
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.training import TrainingOptions, compile_training, read_checkpoint, trained
from kernels.training.stages import stages_of
from tests.training_reference import train_reference

Array = npt.NDArray[Any]
BATCH = 64
VERIFIED_BATCHES = 5
BOUND = 1e-4
"""The bound of the norm of the difference to the reference, over that of what the training moved."""
RATES = {"classifier_784": 0.45}
"""Study A's; of the others one at which nothing overflows."""


def training_of(name: str, samples: int, epochs: int) -> TrainingOptions:
    """Study A's way, or plain descent with momentum."""
    is_stacked = name == "classifier_784"
    return TrainingOptions(
        samples, epochs, seed=1, learning_rate=RATES.get(name, 0.01), momentum=0.0 if is_stacked else 0.9,
        pretrain_epochs=epochs if is_stacked else 0,
    )  # fmt: skip


def data_of(graph: Graph, samples: int) -> dict[str, Array]:
    """Random images and classes."""
    rng = np.random.default_rng(0)
    shape = (samples, *graph.shapes[graph.inputs[0]][1:])
    return {
        graph.inputs[0]: rng.integers(0, 256, shape, dtype=np.uint8),
        "labels": rng.integers(0, 10, samples, dtype=np.uint8),
    }


def distance(graph: Graph, got: Mapping[str, Array], wanted: Mapping[str, Array]) -> float:
    """The largest difference of a weight, over how far the training moved it."""
    found = []
    for name, start in graph.constants.items():
        moved = float(np.linalg.norm(wanted[name] - start))
        found.append(float(np.linalg.norm(got[name].astype(np.float64) - wanted[name])) / moved)
    return max(found)


def verified(agent: Agent, graph: Graph, name: str, options: Options, limits: Limits, device: str) -> float:
    """Return how far a few batches of every stage end from the reference."""
    training = training_of(name, BATCH * VERIFIED_BATCHES, 1)
    data = data_of(graph, training.samples)
    _, weights = train_reference(graph, training, data[graph.inputs[0]], data["labels"])
    bundle = compile_training(graph, training, options, limits)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder, "checkpoint")
        agent.train(bundle, data, device=device, checkpoint=file)
        return distance(graph, trained(graph, read_checkpoint(file)).constants, weights)


def ours(
    agent: Agent, graph: Graph, name: str, options: Options, limits: Limits, arguments: argparse.Namespace, device: str
) -> dict[str, list[float]]:
    """Seconds of each epoch, by stage."""
    training = training_of(name, arguments.samples, arguments.epochs)
    bundle = compile_training(graph, training, options, limits)
    data = data_of(graph, training.samples)
    found: dict[str, list[float]] = defaultdict(list)
    for sample in agent.train(bundle, data, device=device, threads=arguments.threads, limit_s=arguments.limit_s):
        found[sample["stage"]].append(sample["duration_ns"] / 1e9)
    return dict(found)


def peers(graph: Graph, name: str, arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """PyTorch's epochs by how it ran; empty where it is not installed."""
    try:
        from benchmarks.engine.torch_training import epochs_of, ways
    except ImportError:
        return {}
    training = training_of(name, arguments.samples, arguments.epochs)
    data = data_of(graph, training.samples)
    found: dict[str, dict[str, list[float]]] = {}
    for way in ways(arguments.torch):
        found[way.name] = {
            stage.name: epochs_of(stage, training, data[graph.inputs[0]], data["labels"], way)
            for stage in stages_of(graph, training)
        }
    return found


def compare(agent: Agent, arguments: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Every network on every API; prints as it goes."""
    result: dict[str, Any] = {"machine": describe_machine(), "samples": arguments.samples, "batch": BATCH, "rows": []}
    right = True
    for name in arguments.networks.split(","):
        graph = NETWORKS[name](1, BATCH)
        for api in filter(None, arguments.api.split(",")):
            facts = next(iter(agent.devices(api)), None)
            if facts is None:
                print(f"{name} {api}: no device")
                continue
            options, limits = Options(api), limits_of(facts)
            off = verified(agent, graph, name, options, limits, facts["device_name"])
            right &= off <= BOUND
            times = ours(agent, graph, name, options, limits, arguments, facts["device_name"]) if off <= BOUND else {}
            _tell(result, name, f"ours {api} ({facts['device_name']})", times, off)
        for way, times in peers(graph, name, arguments).items():
            _tell(result, name, way, times, None)
    return result, right


def _tell(result: dict[str, Any], name: str, who: str, times: Mapping[str, list[float]], off: float | None) -> None:
    result["rows"].append({"network": name, "who": who, "seconds": dict(times), "off": off})
    error = "" if off is None else f"; {off:.1e} from the reference{'' if off <= BOUND else ', WRONG'}"
    stages = ", ".join(f"{stage} {min(each):.3f} s" for stage, each in times.items())
    print(f"{name}: {who}: {stages}{error}", flush=True)


def main() -> None:
    """Parse, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="classifier_784")
    parser.add_argument("--api", default="opencl,vulkan,cpu")
    parser.add_argument("--torch", default="cpu,cuda,cuda-graph", help="ways of PyTorch; empty: none")
    parser.add_argument("--samples", type=int, default=60000)
    parser.add_argument("--epochs", type=int, default=3, help="of each stage")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU backend; 0: every core")
    parser.add_argument("--limit-s", type=float, default=580.0, help="of one run of the agent")
    parser.add_argument("--agent", type=Path, default=None, help="the native agent; default: the one built here")
    parser.add_argument("-o", "--output", type=Path, help="file for the raw result")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
        result, right = compare(Agent(arguments.agent or binary(), Path(cache)), arguments)
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    run_command(main)
