"""A node of the model as several standard ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from kernels.frontend.spelling import spelled
from kernels.ir.packed import PackedMatrix

from .context import AnyArray, Context, OnnxNode

OPSET = 23
"""The opset in which standard nodes are written, whatever the model's is."""


class Nodes:
    """The nodes that one node is written out to. There is a method for each operator, by its name in lower case, which
    imports a node of it: `n.matmul(a, b)`, `n.reduce_sum(x, keepdims=0)`; see `add_node`."""

    def __init__(self, node: OnnxNode, to: Context, import_: Callable[[OnnxNode, Context], None]) -> None:
        self.node, self.to, self.import_ = node, to, import_

    def __getattr__(self, word: str) -> Callable[..., str]:
        return partial(self.add_node, spelled(word.rstrip("_")))

    def attribute(self, name: str, usual: Any) -> Any:
        return self.node.attributes.get(name, usual)

    def add_node(self, op: str, *inputs: str, to_output: int | None = None, name: str = "", **attributes: Any) -> str:
        """Import a standard node; returns its result: the output of this number, that of this name, or a new tensor."""
        target = name or (self.fresh(op) if to_output is None else self.node.outputs[to_output])
        self.add_nodes(op, (target,), *inputs, **attributes)
        return target

    def add_nodes(self, op: str, outputs: tuple[str, ...], *inputs: str, **attributes: Any) -> None:
        """Import a standard node that has these outputs."""
        self.import_(OnnxNode(outputs[0], op, OPSET, inputs, outputs, attributes), self.to)

    def several(self, word: str, count: int, *inputs: str, **attributes: Any) -> tuple[str, ...]:
        """Import a standard node, by its name in lower case, that has so many results."""
        op = spelled(word)
        names = tuple(self.fresh(op + ".second" * number) for number in range(count))
        self.add_nodes(op, names, *inputs, **attributes)
        return names

    def end(self, source: str, output: int = 0) -> None:
        """A tensor is the node's output of this number, if something reads that."""
        if self.wants(output):
            self.identity(source, to_output=output)

    def wants(self, output: int) -> bool:
        return output < len(self.node.outputs) and bool(self.node.outputs[output])

    def store(self, value: Any, kind: type[np.generic] = np.int64) -> str:
        """A new constant."""
        name = self.fresh("constant")
        content: Any = value if isinstance(value, PackedMatrix) else np.asarray(value, kind)
        self.to.constants[name] = content
        return name

    def constant(self, index: int) -> AnyArray:
        return self.to.constant(self.node, index)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.to.shape_of(name)

    def fresh(self, what: str) -> str:
        """Name of a new tensor."""
        base = next(filter(None, self.node.outputs))
        return self.to.fresh(f"{base}/{what}{len(self.to.nodes)}.{len(self.to.constants)}")
