"""Loading: from what an experiment names to a graph and its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError, ModelError, OptionError
from kernels.ir.decoder import DecoderStep
from kernels.ir.graph import Graph
from kernels.ir.types import as_type, is_whole, to_numpy
from kernels.reference import check_inputs
from kernels.reference.inputs import describe_inputs

from .input_file import NOTHING_GIVEN, ONLY, Arrays, Given, read_arrays
from .networks import BUILT_IN, known_words, seeded_normal, seeded_whole

Size = int | tuple[int, ...]
MOVES = ("reshape", "transpose")


def load_workload(
    *,
    network: str | None,
    onnx: Path | None,
    seed: int | None,
    batch: int | None = None,
    sizes: Mapping[str, Size] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
) -> Graph:
    """Build a named network or read a file, ONNX or GGUF; exactly one of the two is given.

    `sizes`: of a network that has some, or those that a file leaves open; `given`: arrays that have the file's. Without
    a seed a network's shapes, with weights that are zero. Raises OptionError for an unknown name or both or neither,
    and for sizes that there are not; ModelError for sizes that do not fit together, and for a file that cannot be used.
    """
    if batch is not None and batch < 1:
        raise OptionError(f"batch {batch}: give 1 or more")
    if onnx is not None and network is None:
        return load_file(onnx, batch=batch, sizes=sizes, given=given)
    if network is None or onnx is not None:
        raise OptionError("give exactly one of a built-in network's name and an ONNX file")
    if network not in BUILT_IN:
        close = get_close_matches(network, BUILT_IN, n=1, cutoff=0.5)
        hint = f", did you mean {close[0]!r}?" if close else ""
        raise OptionError(f"network {network!r} is not built in{hint}; known are {known_words()}")
    build: Callable[..., Graph] = BUILT_IN[network]
    return build(seed, batch or 1, **_checked(network, sizes))


def load_file(
    path: Path,
    *,
    batch: int | None = None,
    sizes: Mapping[str, Size] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
) -> Graph:
    """Read an ONNX or a GGUF file, whichever it is. Raises as `load_workload`."""
    from .gguf import is_gguf, load_gguf  # needs onnx, which named networks do without
    from .onnx import load_onnx

    return (load_gguf if is_gguf(path) else load_onnx)(path, batch=batch, sizes=sizes, given=given)


def input_names(network: str | None, onnx: Path | None) -> Sequence[str]:
    """Names of the inputs of a network or a file, whatever sizes the file leaves open. Raises as `load_workload`."""
    if onnx is None or network is not None:
        return load_workload(network=network, onnx=onnx, seed=None).inputs
    from .gguf import decoder_file, is_gguf
    from .onnx.reading.model_file import read_model

    graph = (decoder_file if is_gguf(onnx) else read_model)(onnx).proto.graph
    stored = {tensor.name for tensor in graph.initializer}
    return [port.name for port in graph.input if port.name not in stored]


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


def random_inputs(graph: Graph, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Random numbers for every input, from the seed and the input's name.

    They are standard normal ones; of an input of whole numbers rows of the table from which it chooses, or 0 and 1
    where it chooses from none, as a mask.
    """
    return {
        name: as_type(seeded_whole(seed, name, graph.shapes[name], _rows(graph, name) or 2), graph.types[name])
        if is_whole(graph.types[name])
        else seeded_normal(seed, name, graph.shapes[name])
        for name in graph.inputs
    }


def _rows(graph: Graph, name: str) -> int:
    """Return how many rows the smallest table has from which an input of whole numbers chooses; 0: there is none."""
    named, extents = {name}, list[int]()
    for node in graph.nodes:
        if node.op == "gather" and node.inputs[1] in named:
            extents.append(graph.shapes[node.inputs[0]][node.attributes["axis"]])
        elif node.op in MOVES and node.inputs[0] in named:
            named.add(node.output)
    return min(extents, default=0)


def load_inputs(graph: Graph, path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read a graph's inputs: a `.npy` file for its only input, or a `.npz` with one array per input name.

    Raises InputError for a file that cannot be read and for arrays of the wrong name, shape or type.
    """
    return as_inputs(graph, read_arrays(path), path)


def as_inputs(graph: Graph, arrays: Arrays, path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file as a graph's inputs, see `load_inputs`."""
    if ONLY in arrays and len(graph.inputs) != 1:
        raise InputError(f"{path}: {graph.name} has several inputs; give a .npz with {describe_inputs(graph)}")
    content = {graph.inputs[0] if name == ONLY else name: array for name, array in arrays.items()}
    try:
        check_inputs(graph, content)
    except InputError as e:
        raise InputError(f"{path}: {e}") from e
    return {name: _typed(content[name], graph, name, f"{path}: input {name!r}") for name in graph.inputs}


def _typed(array: npt.NDArray[Any], graph: Graph, name: str, what: str) -> npt.NDArray[Any]:
    """The array in the input's type, of floating point in fp32. Raises InputError for a number that it does not hold,
    a fraction as a whole number, a row that is not there."""
    kind, rows = graph.types[name], _rows(graph, name)
    each = array.reshape(-1)  # an array of rank 0, too, has an element to tell
    each = each.astype({"f": np.float64, "b": np.uint8}.get(each.dtype.kind, each.dtype))
    if is_whole(kind):
        limits = np.iinfo(np.int64 if kind == "bool" else to_numpy(kind))
        if each.dtype.kind == "f" and (odd := each[each != np.trunc(each)]).size:
            raise InputError(f"{what} holds {odd[0]:g}; it takes whole numbers")
        if (odd := each[(each < limits.min) | ~(each < int(limits.max) + 1)]).size:  # of floats none is 2^63 - 1
            raise InputError(f"{what} holds {odd[0]:g}; it takes {to_numpy(kind)}, {limits.min} to {limits.max}")
        if rows and (odd := each[(each >= rows) | (each < -rows)]).size:
            raise InputError(f"{what} holds {odd[0]:g}; it chooses from a table of {rows} rows")
        return np.asarray(array, to_numpy(kind), order="C")
    with np.errstate(over="ignore"):
        single = np.asarray(array, np.float32, order="C")  # `ascontiguousarray` would make a row of a number
    if (large := each[np.isinf(single.reshape(-1)) & np.isfinite(each)]).size:
        raise InputError(f"{what} holds {large[0]:g}, more than fp32 holds: give smaller numbers")
    return single


def load_decoder(
    path: Path, capacity: int, pieces: Sequence[int], logits: int = 1, *, sequences: int = 1
) -> list[DecoderStep]:
    """Read a language model's decoder: a GGUF or ONNX file, or a folder with one ONNX file. Returns a step for each
    number of tokens that a run takes of each of `sequences`, whose state holds `capacity` tokens of each. Of a GGUF
    file it gives the last `logits`.

    Raises ModelError for a file that cannot be used, or takes and gives no keys and values; OptionError for a capacity
    that the model has not learnt.
    """
    from .gguf import decoder_file, is_gguf
    from .onnx import import_decoder, read_model

    if is_gguf(path := decoder_path(path)):
        kept = dict[str, Any]()
        sizes = [{"tokens": count, "logits": min(count, logits)} for count in pieces]
        sized = [{**each, "capacity": capacity, "batch": sequences} for each in sizes]
        files: Sequence[Any] = [decoder_file(path, sizes=each, kept=kept) for each in sized]
    else:
        files = [read_model(path)] * len(pieces)
    return [import_decoder(file, capacity, each, sequences) for file, each in zip(files, pieces, strict=True)]


def decoder_path(path: Path) -> Path:
    """Return the decoder's file: of a folder its only ONNX file. Raises ModelError where it has none, or several."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.onnx"))
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "no .onnx file"
        raise ModelError(f"{path}: a folder with {names}; give the decoder's own file")
    return found[0]
