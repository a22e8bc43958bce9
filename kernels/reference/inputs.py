"""Inputs are checked by name, shape and type before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from kernels.errors import InputError
from kernels.ir.graph import Graph
from kernels.ir.types import is_whole


def check_inputs(graph: Graph, inputs: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raise InputError unless `inputs` holds exactly the graph's inputs, of their shapes, in floating point, or
    whole numbers where it takes these."""
    for name in inputs:
        if name not in graph.inputs:
            raise InputError(f"{graph.name} has no input {name!r}; its inputs are {describe_inputs(graph)}")
    for name in graph.inputs:
        if name not in inputs:
            raise InputError(f"input {name!r} of {graph.name} is missing; give {graph.shapes[name]}")
        check_input(graph, name, inputs[name])


def check_input(graph: Graph, name: str, array: npt.NDArray[Any]) -> None:
    """Raise InputError unless the array fits this input of the graph."""
    expected, whole = graph.shapes[name], is_whole(graph.types[name])
    if tuple(array.shape) != expected or array.dtype.kind not in ("biuf" if whole else "f"):
        raise InputError(
            f"input {name!r} of {graph.name}: expected {expected} {'whole numbers' if whole else 'float32'}, "
            f"given {tuple(array.shape)} {array.dtype}; save it so, as by array.astype"
        )


def describe_inputs(graph: Graph) -> str:
    """The graph's inputs with their shapes, for messages."""
    return ", ".join(f"{name!r} {graph.shapes[name]}" for name in graph.inputs)
