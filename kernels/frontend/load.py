"""From what an experiment names to a graph and its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError, OptionError
from kernels.ir.graph import Array, Graph
from kernels.reference import check_inputs
from kernels.reference.inputs import describe_inputs

from .networks import BUILT_IN, known_words, seeded_normal, seeded_whole

Size = int | tuple[int, ...]
LARGEST_WHOLE = 1 << 24
"""Up to which fp32 holds every whole number."""
MOVES = ("reshape", "transpose")


def load_workload(
    *,
    network: str | None,
    onnx: Path | None,
    seed: int | None,
    batch: int | None = None,
    parameters: Mapping[str, Size] = MappingProxyType({}),
) -> Graph:
    """Build a named network or read an ONNX file; exactly one of the two is given.

    `parameters`: sizes of a network that has some. Without a seed its shapes, with weights that are zero. Raises
    OptionError for an unknown name or both or neither, and for sizes that the network has not; ModelError for sizes
    that do not fit together, and for a file that cannot be used.
    """
    if batch is not None and batch < 1:
        raise OptionError(f"batch {batch}: give 1 or more")
    if onnx is not None and network is None:
        from .onnx import load_onnx  # needs onnx, which named networks do without

        return load_onnx(onnx, batch=batch)
    if network is None or onnx is not None:
        raise OptionError("give exactly one of a built-in network's name and an ONNX file")
    if network not in BUILT_IN:
        close = get_close_matches(network, BUILT_IN, n=1, cutoff=0.5)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise OptionError(f"network {network!r} is not built in{hint}; known are {known_words()}")
    build: Callable[..., Graph] = BUILT_IN[network]
    return build(seed, batch or 1, **_checked(network, parameters))


def sizes_of(network: str) -> dict[str, Size]:
    """The parameters of a built-in network, with what they are where nothing is given."""
    declared = inspect.signature(BUILT_IN[network]).parameters.values()
    return {each.name: each.default for each in declared if each.kind is each.KEYWORD_ONLY}


def _checked(network: str, given: Mapping[str, Size]) -> dict[str, Size]:
    known = sizes_of(network)
    for name, value in given.items():
        if name not in known:
            words = ", ".join(f"{each} ({default})" for each, default in known.items()) or "none"
            raise OptionError(f"network {network} has no parameter {name!r}; it has: {words}")
        if isinstance(value, int) != isinstance(known[name], int):
            kind = "a number" if isinstance(known[name], int) else "a list of numbers"
            raise OptionError(f"network {network}: {name} is {kind}, such as {known[name]}")
        if min([value] if isinstance(value, int) else value, default=0) < 1:
            raise OptionError(f"network {network}: {name} {value}: every number is 1 or more")
    return {name: value if isinstance(value, int) else tuple(value) for name, value in given.items()}


def random_inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Random numbers (fp32) for every input, from the seed and the input's name.

    They are standard normal ones; of an input of whole numbers rows of the table from which it chooses, or 0 and 1
    where it chooses from none, as a mask.
    """
    return {
        name: seeded_whole(seed, name, graph.shapes[name], _rows(graph, name) or 2)
        if name in graph.whole
        else seeded_normal(seed, name, graph.shapes[name])
        for name in graph.inputs
    }


def _rows(graph: Graph, name: str) -> int:
    """How many rows the smallest table has from which an input of whole numbers chooses; 0: there is none."""
    named, extents = {name}, list[int]()
    for node in graph.nodes:
        if node.op == "gather" and node.inputs[1] in named:
            extents.append(graph.shapes[node.inputs[0]][node.attributes["axis"]])
        elif node.op in MOVES and node.inputs[0] in named:
            named.add(node.output)
    return min(extents, default=0)


def load_inputs(graph: Graph, path: Path) -> dict[str, Array]:
    """Read a graph's inputs (fp32): a `.npy` file for its only input, or a `.npz` with one array per input name.

    Raises InputError for a file that cannot be read and for arrays of the wrong name, shape or type.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(np.lib.format.MAGIC_PREFIX))
            if start.startswith(b"\x80"):
                raise InputError(f"{path}: a pickle, which is never loaded; write the array with numpy.save")
            if not start.startswith((np.lib.format.MAGIC_PREFIX, b"PK")):
                raise InputError(f"{path}: no .npy or .npz file; write the array with numpy.save")
            file.seek(0)
            content = _arrays(graph, path, np.load(file, allow_pickle=False))
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror or e}; give the path of a .npy or .npz file") from e
    except (ValueError, EOFError, BadZipFile) as e:
        raise InputError(f"{path}: no readable .npy or .npz file: {e}; write it with numpy.save") from e
    check_inputs(graph, content)
    return {name: _in_single(content[name], graph, name, f"{path}: input {name!r}") for name in graph.inputs}


def _in_single(array: npt.NDArray[Any], graph: Graph, name: str, what: str) -> Array:
    """Raises InputError for a number that fp32 does not hold, a fraction as a whole number, a row that is not there."""
    whole, rows = name in graph.whole, _rows(graph, name)
    if whole and array.dtype.kind == "f" and (odd := array[array != np.trunc(array)]).size:
        raise InputError(f"{what} holds {odd[0]:g}; it takes whole numbers")
    if array.dtype.kind != "f" and (large := array[(array > LARGEST_WHOLE) | (array < -LARGEST_WHOLE)]).size:
        raise InputError(f"{what} holds {large[0]}; whole numbers are computed in fp32, exact up to {LARGEST_WHOLE}")
    if whole and rows and (odd := array[(array >= rows) | (array < -rows)]).size:
        raise InputError(f"{what} holds {odd[0]:g}; it chooses from a table of {rows} rows")
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(array, np.float32)
    if (large := array[np.isinf(single) & np.isfinite(array)]).size:
        raise InputError(f"{what} holds {large[0]:g}, more than fp32 holds: give smaller numbers")
    return single


def _arrays(graph: Graph, path: Path, content: Any) -> Mapping[str, npt.NDArray[Any]]:
    """Arrays by the name of their input."""
    if not isinstance(content, np.ndarray):
        return dict(content)
    if len(graph.inputs) != 1:
        raise InputError(f"{path}: {graph.name} has several inputs; give a .npz with {describe_inputs(graph)}")
    return {graph.inputs[0]: content}
