"""One node of the model becomes nodes of the graph, as its operator's entry says."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial

import onnx

from . import constant_nodes, folding
from .context import STANDARD_DOMAINS, Context, OnnxNode
from .counted_rows.counts import write_out
from .counted_rows.rows import Rows
from .counted_rows.sizes import with_sizes
from .nodes import Nodes
from .operands import check_operands, result_types
from .operator import Operator, Operators, some_computed

CLASSICAL_DOMAIN = "ai.onnx.ml"
RANDOM = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)


class Importer:
    """Imports nodes of the operators that it knows."""

    def __init__(self, operators: Operators) -> None:
        self._operators = operators

    def __call__(self, node: OnnxNode, to: Context) -> None:
        """Emit what one ONNX node means. Raises ModelError, and UnsupportedNode with what is known instead."""
        constant = not some_computed(node, to)
        self.check_known(node, constant=constant)
        entry = self._operators.find(node.op, node.domain) or Operator(node.op)
        if entry.write and entry.writes(node, to):
            for index, name in enumerate(node.inputs):
                if name and name not in to.sequences and name not in to.absent:
                    to.require(node, name, f"input {index}")
            if any(node.outputs):
                entry.write(Nodes(node, to, self))
        elif any(node.outputs):
            self._import(node, to, entry, constant)

    def check_known(self, node: OnnxNode, *, constant: bool = False) -> None:
        """Raise UnsupportedNode, which says what to do instead, for an operator that the import does not know;
        `constant`: its inputs are, so that ONNX's reference implementation may know it."""
        standard, has_graphs = (
            node.domain in STANDARD_DOMAINS,
            any(isinstance(value, onnx.GraphProto) for value in node.attributes.values()),
        )
        computed = constant and standard and node.op not in RANDOM and not has_graphs
        if computed or self._operators.find(node.op, node.domain):
            return
        if node.domain == CLASSICAL_DOMAIN:
            node.reject(
                f"{node.domain} is classical machine learning (trees, support vectors, scalers, encoders), and only "
                "neural networks are compiled: run this model with onnxruntime"
            )
        if standard and node.op in RANDOM:
            node.reject(
                "it draws numbers that are others in every run, and no result could be checked: let the network take "
                "them as an input (in PyTorch an argument of forward instead of torch.rand or torch.randn), and export "
                "it again"
            )
        if standard and not onnx.defs.has(node.op):
            node.reject(
                "ONNX has no such operator (tf2onnx leaves those of TensorFlow that it cannot convert): write this "
                "part of the network in other operations, and export it again"
            )
        where = "" if standard else f" of domain {node.domain!r}"
        if node.domain.startswith("com.microsoft"):
            node.reject(
                f"not supported{where}, as onnxruntime's tools write it: bring the model as it was before, or saved "
                "with ORT_ENABLE_BASIC"
            )
        close = get_close_matches(node.op, self._operators.names(), n=1, cutoff=0.8)
        hint = f"; did you mean {close[0]}?" if close else ""
        node.reject(f"not supported{where}{hint}: export the model without it (docs/limits.md lists what is known)")

    def _import(self, node: OnnxNode, to: Context, entry: Operator, constant: bool) -> None:
        emit = partial(_emit, entry)
        node = with_sizes(node, to, entry.sizes)
        if entry.follow and entry.follow(node, to):
            return
        for index, name in enumerate(node.inputs):
            if name in to.extents and (entry.counts_from is None or index < entry.counts_from):
                write_out(node, to, name)
        check_operands(node, to, entry)
        if any(name in to.counts or name in to.extents for name in node.inputs):
            rows = Rows(node, to, emit)
            if entry.rows is None:
                rows.refuse(f"{node.op} of such rows is not supported")
            entry.rows(rows)
        elif constant and entry.fold:
            folding.fold(node, to, entry)
        elif constant and node.inputs:
            if not constant_nodes.computed(node, to, emit):
                folding.compute(node, to, entry.most_times)
        else:
            emit(node, to)
        to.types |= {name: kind for name, kind in result_types(node, to).items() if name in to.shapes}


def _emit(entry: Operator, node: OnnxNode, to: Context) -> None:
    """Emit a node as one operation that has kernels of its own, where it can be; or else in general operations."""
    if entry.import_ is None:
        node.reject(f"supported only where every input is a constant; inputs are {', '.join(node.inputs)}")
    if entry.direct is None or len(node.outputs) > 1 or not entry.direct(node, to):
        entry.import_(node, to)
