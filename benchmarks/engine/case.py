"""One network with its weights, fresh random inputs and what they must give."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.frontend.load import load_workload, random_inputs
from kernels.frontend.networks.export import to_onnx
from kernels.ir.graph import Graph
from kernels.reference import evaluate

Arrays = dict[str, np.ndarray[Any, Any]]
INPUTS = 2
"""The number of inputs that are verified: who returns the same for all is found out."""


@dataclass(frozen=True)
class Case:
    """The network and inputs that every contender gets."""

    network: str
    seed: int
    batch: int
    graph: Graph
    onnx: Path
    inputs: tuple[Arrays, ...]
    files: tuple[Path, ...]
    """The inputs as .npz files."""
    wanted: tuple[Arrays, ...]
    reference: str
    """The computer of what is wanted."""
    input_seeds: tuple[int, ...]


def make_case(network: str, folder: Path, *, seed: int = 1, batch: int = 1, onnx: bool = True) -> Case:
    """Build, export (with `onnx`), draw inputs and compute the reference. Raises CompileError for an unknown name."""
    graph = load_workload(network=network, onnx=None, seed=seed, batch=batch)
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"{network}.onnx"
    if onnx:
        to_onnx(graph, model)
    seeds = tuple(secrets.randbelow(1 << 31) for _ in range(INPUTS))
    inputs = tuple(random_inputs(graph, each) for each in seeds)
    files = tuple(folder / f"{network}-{index}.npz" for index in range(INPUTS))
    for file, arrays in zip(files, inputs, strict=True):
        np.savez(file, **arrays)  # type: ignore[arg-type]
    found = [_reference(graph, arrays) for arrays in inputs]
    return Case(
        network, seed, batch, graph, model, inputs, files, tuple(wanted for wanted, _ in found), found[0][1], seeds
    )


def read_case(folder: Path, network: str) -> Case:
    """A network that `zoo.files` wrote. Raises CompileError where it cannot be imported."""
    graph = load_workload(network=None, onnx=model_file(folder, network), seed=0)
    files = tuple(inputs_file(folder, network, index) for index in range(INPUTS))
    inputs, wanted = (
        tuple(_arrays(named(folder, network, index)) for index in range(INPUTS)) for named in (inputs_file, wanted_file)
    )
    return Case(
        network, 0, 1, graph, model_file(folder, network), inputs, files, wanted, "PyTorch, fp64, at the export", ()
    )


def model_file(folder: Path, network: str) -> Path:
    """Return the file of a network of the zoo; a name may have a colon."""
    return folder / f"{network.replace(':', '_')}.onnx"


def inputs_file(folder: Path, network: str, index: int) -> Path:
    """Input `index`, by the graph's names."""
    return model_file(folder, network).with_suffix(f".{index}.npz")


def wanted_file(folder: Path, network: str, index: int) -> Path:
    """Return the file of what input `index` gives in double precision, by the graph's names."""
    return model_file(folder, network).with_suffix(f".{index}.wanted.npz")


def _arrays(file: Path) -> Arrays:
    with np.load(file) as found:
        return {name: found[name] for name in found.files}


def _reference(graph: Graph, inputs: Arrays) -> tuple[Arrays, str]:
    """PyTorch in double precision; without PyTorch our own reference, which is slower and not independent."""
    try:
        import torch

        from workers.engines.torch.torch_graph import Unsupported, evaluate_wide
    except ImportError:
        return dict(evaluate(graph, inputs)), "NumPy reference of this repository, fp64"
    try:
        return evaluate_wide(graph, inputs), f"PyTorch {torch.__version__}, fp64"
    except Unsupported as e:
        return dict(evaluate(graph, inputs)), f"NumPy reference of this repository, fp64 ({e})"


def relative_error(found: Arrays, wanted: Arrays) -> float:
    """The worst output's norm of the difference, over the norm of what is wanted; infinite where one is missing."""
    errors = [float("inf")]
    if set(found) == set(wanted):
        errors = [_error(np.asarray(found[name], np.float64), array) for name, array in wanted.items()]
    return max(errors)


def _error(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    if found.size != wanted.size or not np.isfinite(found).all():
        return float("inf")
    return float(np.linalg.norm(found.ravel() - wanted.ravel()) / np.linalg.norm(wanted))
