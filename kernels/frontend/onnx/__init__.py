"""ONNX file -> graph of canonical operations with static shapes.

Every ONNX node's output keeps its name. Weights that an operator transforms (a turned matrix, a normalisation) get a
name derived from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx

from kernels.errors import ModelError, checkpoint
from kernels.frontend.input_file import NOTHING_GIVEN, Given
from kernels.ir.decoder import DecoderStep
from kernels.ir.graph import Graph

from . import operators, rewriting
from .context import Context, OnnxNode
from .counted_rows.counts import write_out
from .counted_rows.decoder import Decoder, head_widths, newest, step_of
from .counted_rows.lanes import join_lanes
from .counted_rows.rows import output_counts
from .importing import Importer
from .operator import Operators, some_computed
from .reading.graphs import names_read
from .reading.inference import Inference
from .reading.inputs import declared_sizes, fixed_inputs, input_shapes, type_name
from .reading.model_file import NEWEST_OPSET, OLDEST_OPSET, VERIFIED_OPSET, ModelFile, opset, read_model, tensor_array
from .reading.node_checker import NodeChecker
from .reading.obstacles import Obstacles
from .rewriting.functions import expanded
from .rewriting.sequences import outputs_of
from .rewriting.suppression_limits import limit_suppression

OPERATORS = Operators((*operators.OPERATORS, *rewriting.OPERATORS))
import_node = Importer(OPERATORS)
MAX_SHOWN = 60
"""Characters of an attribute in a message."""
__all__ = ["NEWEST_OPSET", "OLDEST_OPSET", "OPERATORS", "VERIFIED_OPSET", "import_model", "load_onnx", "read_model"]


def load_onnx(
    path: Path,
    *,
    batch: int | None = None,
    sizes: Mapping[str, Any] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
) -> Graph:
    """Read a model, see `import_model`. External data is read from the model's own folder only."""
    return import_model(read_model(path), batch=batch, sizes=sizes, given=given)


def import_model(
    file: ModelFile,
    *,
    batch: int | None = None,
    sizes: Mapping[str, Any] = MappingProxyType({}),
    given: Given = NOTHING_GIVEN,
) -> Graph:
    """Return the graph of a model that was read; it may be imported again, with other sizes.

    What the file leaves open is taken from `sizes` by name and from the `given` arrays; `batch`: of first dimensions,
    which are 1 where nothing says them. An input that `sizes` names is no input any more, but that number. Raises
    ModelError for a file that is unreadable or damaged, has NaN weights or sizes that nothing says, and
    UnsupportedNode for an operator or attribute that is not known.
    """
    version = opset(file.proto, file.name)
    try:
        model = expanded(file.proto, version, OPERATORS)
        return _import(model, file, version, sizes, partial(input_shapes, batch=batch, given=given))
    except ModelError as e:
        raise type(e)(f"{file.name}: {e}", e.obstacles) from e


def import_decoder(file: ModelFile, capacity: int, tokens: int, sequences: int = 1) -> DecoderStep:
    """Return the step of a language model's decoder: `tokens` of each sequence at a computed position, a state of
    `capacity`.

    Raises as `import_model` does, and ModelError for a file that has no cache, or one whose length is not open.
    """
    graph = file.proto.graph
    widths = head_widths(graph, {info.name: declared_sizes(info) for info in graph.value_info})
    version, decoder = opset(file.proto, file.name), Decoder(capacity, tokens, sequences, widths=widths)
    outputs = [port.name for port in graph.output]
    try:
        model = expanded(file.proto, version, OPERATORS)
        shapes_of = partial(_shapes, decoder, outputs)
        return step_of(_import(model, file, version, {}, shapes_of, decoder), decoder)
    except ModelError as e:
        raise type(e)(f"{file.name}: {e}", e.obstacles) from e


def _shapes(
    decoder: Decoder, outputs: list[str], ports: list[onnx.ValueInfoProto], **_: object
) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    return decoder.shapes({port.name: declared_sizes(port) for port in ports}, outputs)


def _import(
    model: onnx.ModelProto,
    file: ModelFile,
    version: int,
    sizes: Mapping[str, Any],
    shapes_of: Callable[..., tuple[dict[str, tuple[int, ...]], dict[str, str]]],
    decoder: Decoder | None = None,
) -> Graph:
    graph = model.graph
    limit_suppression(graph)
    if graph.sparse_initializer:
        raise ModelError("sparse initializers are not supported; export dense weights")
    _check_names(graph)
    constants = {tensor.name: file.array(tensor) for tensor in graph.initializer}
    folder = file.path.parent
    ports = [port for port in graph.input if port.name not in constants]
    constants |= (fixed := fixed_inputs(ports, sizes))
    ports = [port for port in ports if port.name not in fixed]
    outputs = tuple(dict.fromkeys(port.name for port in graph.output))  # PyTorch names one that is returned twice twice
    inputs, refused = shapes_of(ports, sizes={name: size for name, size in sizes.items() if name not in fixed})
    written = frozenset(name for node in graph.node for name in node.output)
    check, inference = NodeChecker(version, model.ir_version, OPERATORS), Inference(version, model.ir_version)
    decode = partial(_decode, version=version, folder=folder)

    def each(proto: onnx.NodeProto, read: frozenset[str], to: Context) -> None:
        checkpoint()
        check(proto)
        _import_one(decode(proto, read=read), to)

    to = Context(version, constants, {}, folder, written, each)
    for port in ports:
        if port.name not in inputs:
            continue
        to.add_shape(port.name, inputs[port.name])
        to.types[port.name] = _type(port)
    if decoder is not None:
        kinds = {port.name: _type(port) for port in ports}
        decoder.begin({port.name: declared_sizes(port) for port in ports}, kinds, to)
    read = frozenset((*outputs, *names_read(graph.node)))

    def alone(proto: onnx.NodeProto) -> None:
        node = decode(proto, read=read)
        if some_computed(node, to) or OPERATORS.find(node.op, node.domain) is None:
            import_node.check_known(node)
        check(proto)

    obstacles = Obstacles(version, alone, inference)
    for name, reason in refused.items():
        obstacles.add_input(name, reason)
    for proto in graph.node:
        if obstacles.hide(proto, to):
            continue
        try:
            each(proto, read, to)
            inference.check(proto, to)
        except ModelError as e:
            obstacles.add(proto, e, to)
    obstacles.check()
    outputs = outputs_of(to, outputs, import_node)
    for name in outputs:
        if name in to.extents:
            write_out(OnnxNode(name, "", version, (name,), (name,), {}), to, name)
    state = {past: newest(to, name) for past, name in decoder.past.items()} if decoder else {}
    ports = [name for name in outputs if not decoder or name not in decoder.past.values()]
    outputs, further = (*ports, *state.values()), output_counts(to, ports)
    join_lanes(to, (*outputs, *further))
    _check_outputs(graph, outputs, inputs, to)
    _check_types(graph, to)
    names = {*inputs, *to.weights, *(output for node in to.nodes for output in node.outputs)}
    shapes = {name: shape for name, shape in to.shapes.items() if name in names}
    outputs, types = (*outputs, *further), to.element_types(names)
    return Graph(
        file.name.stem,
        tuple(inputs),
        outputs,
        to.nodes,
        shapes,
        to.weights,
        to.places,
        to.sums,
        types,
        state,
    )


def _type(port: onnx.ValueInfoProto) -> np.dtype[Any]:
    kind: np.dtype[Any] = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
    return kind


def _import_one(node: OnnxNode, to: Context) -> None:
    """One node; what Python itself makes of numbers that nobody expects is an error of the model's, too."""
    try:
        import_node(node, to)
    except ModelError as e:
        if repr(node.name) in str(e):
            raise
        raise type(e)(f"node {node.name!r} ({node.op}): {e}") from e
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as e:
        raise ModelError(
            f"node {node.name!r} ({node.op}): its inputs and attributes do not fit together: given {_given(node, to)}"
            f"{_expected(node)}; check the sizes of the model's inputs, or export the model again"
        ) from e


def _given(node: OnnxNode, to: Context) -> str:
    """The shapes and types of a node's inputs, and its attributes but for graphs and tensors."""
    inputs = [
        f"{name!r} {to.shape_of(name)} {to.type_of(name)}"
        for name in node.inputs
        if name in to.shapes or name in to.constants or name in to.extents
    ]
    attributes = [f"{k}={v}" for k, v in node.attributes.items() if isinstance(v, int | float | str | list)]
    return ", ".join([*inputs, *(each[:MAX_SHOWN] for each in attributes)]) or "nothing"


def _expected(node: OnnxNode) -> str:
    """The inputs that ONNX says an operator has."""
    if not onnx.defs.has(node.op, node.opset):
        return ""
    known = onnx.defs.get_schema(node.op, node.opset).inputs
    return f"; ONNX expects {', '.join(each.name for each in known)}" if known else ""


def _decode(proto: onnx.NodeProto, *, version: int, folder: Path, read: frozenset[str]) -> OnnxNode:
    """Attributes as Python values: numbers, strings, lists, and tensors as arrays. Further outputs that nothing reads
    (the mask of a dropout) have no name, but all of a Split's, whose sizes follow their number."""
    attributes: dict[str, Any] = {}
    for attribute in proto.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = tensor_array(value, folder)
        attributes[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    every = tuple(proto.output) or ("",)
    last = max((index for index, name in enumerate(every) if name in read), default=0)
    outputs = (every[0], *(name if name in read else "" for name in every[1 : last + 1]))
    outputs = every if proto.op_type == "Split" else outputs
    name = proto.name or next(filter(None, every), "")
    return OnnxNode(name, proto.op_type, version, tuple(proto.input), outputs, attributes, proto.domain)


def _check_names(graph: onnx.GraphProto) -> None:
    """Every tensor has a name of its own, which the agent can be told."""
    stored, ports = [tensor.name for tensor in graph.initializer], [port.name for port in graph.input]
    written = [name for node in graph.node for name in node.output if name]
    for name, count in Counter([*written, *(set(stored) | set(ports))]).items():
        if count > 1:
            raise ModelError(f"tensor {name!r} is written twice; the model is damaged")
    for kind, names in (("initializers", stored), ("inputs", ports)):
        for name, count in Counter(names).items():
            if count > 1:
                raise ModelError(f"{count} {kind} are called {name!r}; the model is damaged: names must differ")
    for name in ports:
        if not name or "=" in name:
            raise ModelError(f"an input is called {name!r}; rename it: it needs a name, without '='")


def _check_outputs(graph: onnx.GraphProto, outputs: Collection[str], inputs: Collection[str], to: Context) -> None:
    """Every output exists, has elements and depends on an input, or is a constant that can be stored."""
    written = {output for node in to.nodes for output in node.outputs}
    known = _told(graph)
    for name in outputs:
        constant, told = to.constants.get(name), known.get(name, f"output {name!r}")
        if name not in to.shapes and constant is None:
            raise ModelError(f"output {name!r} is written by no node; the model is damaged")
        if constant is not None and not constant.size:
            raise ModelError(f"{told} of shape {constant.shape} is empty; take it out of the model's outputs")
        if name in written or name in inputs:
            continue
        if constant is None or constant.dtype.kind not in "biuf":
            raise ModelError(f"{told} depends on no input; take it out of the model's outputs")
        to.add_weight(name, constant)
    if not to.nodes:
        raise ModelError("no node computes anything from an input: there is nothing to run")


def _told(graph: onnx.GraphProto) -> dict[str, str]:
    """The model's outputs, each with how an error calls it: by the node that writes it."""
    writers = {name: node for node in graph.node for name in node.output}
    return {
        name: f"node {writers[name].name or name!r} ({writers[name].op_type}): output {name!r}"
        if name in writers
        else f"output {name!r}"
        for name in (port.name for port in graph.output)
    }


def _check_types(graph: onnx.GraphProto, to: Context) -> None:
    """Raise ModelError where the file says another type of an output than its node gives."""
    writers = {name: node for node in graph.node for name in node.output}
    for port in graph.output:
        said, found = port.type.tensor_type.elem_type, onnx.helper.np_dtype_to_tensor_dtype(to.type_of(port.name))
        if said not in (onnx.TensorProto.UNDEFINED, found):
            node = writers.get(port.name)
            by = f"node {node.name!r} ({node.op_type}) gives" if node else "the model gives"
            raise ModelError(
                f"output {port.name!r} is declared {type_name(said)}, but {by} {type_name(found)}; the model is damaged"
            )
