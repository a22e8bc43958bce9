"""Functions that a model brings along, written out where they are called.

ONNX's own inliner forgets the defaults of attributes that a call leaves out (1.23), and gives another model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx

from kernels.errors import ModelError
from kernels.frontend.onnx.reading.graphs import every_node, graphs_of, names_read, renamed
from kernels.frontend.spelling import spelled

MAX_NODES = 100_000
"""The most nodes that all calls of a model may be written out to."""
Key = tuple[str, str, str]


class Calls:
    """The functions of a model, and how many of their nodes were written out."""

    def __init__(self, model: onnx.ModelProto, kept: set[tuple[str, str]]) -> None:
        """`kept`: domains and names of what is not written out."""
        self._functions = {_key(each): each for each in model.functions if (each.domain, each.name) not in kept}
        self._versions = {each.domain: each.version for each in model.opset_import}
        self._taken = {*names_read(model.graph.node), *(port.name for port in model.graph.input)}
        self._taken |= {name for node in every_node(model.graph.node) for name in node.output}
        self._taken |= {tensor.name for tensor in model.graph.initializer}
        self._written = 0

    def write_out(self, graph: onnx.GraphProto, within: tuple[Key, ...] = ()) -> None:
        """Replace the calls of a graph, and of those inside of it. Raises ModelError for one without an end."""
        nodes = [*self._nodes(graph.node, within)]
        del graph.node[:]
        graph.node.extend(nodes)

    def _nodes(self, nodes: Sequence[onnx.NodeProto], within: tuple[Key, ...]) -> Iterator[onnx.NodeProto]:
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            function = self._functions.get(key)
            if function is None:
                for inner in graphs_of(node):
                    self.write_out(inner, within)
                yield node
                continue
            name = node.name or next(filter(None, node.output), node.op_type)
            if key in within:
                raise ModelError(f"node {name!r} ({node.op_type}): its function calls itself; the model is damaged")
            self._check_opsets(function, name)
            self._written += len(function.node)
            if self._written > MAX_NODES:
                raise ModelError(f"node {name!r} ({node.op_type}): its functions come to more than {MAX_NODES} nodes")
            yield from self._nodes(self._body(function, node, name), (*within, key))

    def _check_opsets(self, function: onnx.FunctionProto, name: str) -> None:
        for each in function.opset_import:
            if (own := self._versions.get(each.domain, each.version)) != each.version:
                raise ModelError(
                    f"node {name!r} ({function.name}): its functions cannot be written out: they are written for opset "
                    f"{each.version} of {each.domain or 'ai.onnx'!r}, the model for {own}; export it without functions"
                )

    def _body(self, function: onnx.FunctionProto, call: onnx.NodeProto, name: str) -> list[onnx.NodeProto]:
        """The function's nodes with the call's tensors and attributes, or the attributes' defaults."""
        if len(call.input) > len(function.input) or len(call.output) > len(function.output):
            raise ModelError(f"node {name!r} ({call.op_type}): it has more inputs or outputs than its function")
        attributes = {each.name: each for each in (*function.attribute_proto, *call.attribute)}
        names = dict.fromkeys(function.input, "") | dict(zip(function.input, call.input, strict=False))
        given = {outer: inner for inner, outer in zip(function.output, call.output, strict=False) if outer}
        results = {inner: outer for outer, inner in given.items()}
        made = dict.fromkeys(each for node in function.node for each in node.output if each)
        names |= {each: results[each] if each in results else self._fresh(f"{name}/{each}") for each in made}
        body = [renamed(node, names, name) for node in function.node]
        for node in every_node(body):
            _bind(node, attributes)
        through = [(inner, outer) for outer, inner in given.items() if inner not in made or results[inner] != outer]
        body += [
            onnx.helper.make_node(spelled("identity"), [names.get(inner, inner)], [outer]) for inner, outer in through
        ]
        return body

    def _fresh(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _key(function: onnx.FunctionProto) -> Key:
    return function.domain, function.name, function.overload


def _bind(node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto]) -> None:
    """Replace an attribute that names one of the function by its value; it is absent where that has none."""
    bound = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in attributes:
                continue
            value = onnx.AttributeProto()
            value.CopyFrom(attributes[attribute.ref_attr_name])
            value.name = attribute.name
            attribute = value
        bound.append(attribute)
    del node.attribute[:]
    node.attribute.extend(bound)
