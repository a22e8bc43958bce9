"""Graph -> `net.param` and `net.bin`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine.simplified import simplified
from kernels.ir.graph import Graph

from .layers import LAYERS
from .text import line, numbered, with_splits
from .writer import Unsupported, Writer

MAGIC = 7767517


@dataclass(frozen=True)
class Files:
    """The files that ncnn loads, and its names of the graph's ports."""

    param: Path
    weights: Path
    inputs: dict[str, str]
    outputs: dict[str, str]


def write_ncnn(graph: Graph, folder: Path) -> Files:
    """Write `net.param` and `net.bin`. Raises Unsupported."""
    graph = simplified(graph)
    if any(graph.shapes[name][0] != 1 for name in graph.inputs):
        raise Unsupported("ncnn has no batch: give one image")
    writer = Writer(graph)
    for name in graph.inputs:
        writer.add("Input", name, (), name, {})
    for node in graph.nodes:
        if node.op not in LAYERS:
            raise Unsupported(f"{node.name}: no counterpart of {node.op} in this writer")
        LAYERS[node.op](writer, node)
    outputs = {name: writer.blob(name) for name in graph.outputs}
    layers, inputs_of_split = with_splits(writer.layers)
    if split := set(outputs.values()) & inputs_of_split:
        raise Unsupported(f"{', '.join(sorted(split))}: an output that is read inside, too")
    names = numbered(layers)
    lines = [line(layer, names) for layer in layers]
    param, weights = folder / "net.param", folder / "net.bin"
    param.write_text("\n".join([str(MAGIC), f"{len(lines)} {len(names)}", *lines]) + "\n")
    with weights.open("wb") as file:
        file.writelines(writer.weights)
    return Files(
        param, weights, {name: names[name] for name in graph.inputs}, {k: names[v] for k, v in outputs.items()}
    )
