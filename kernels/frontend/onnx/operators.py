"""Every ONNX operator that the import knows, by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

import onnx

from kernels.errors import UnsupportedNode

from . import binary, constant_nodes, control, elementwise, folding, images, layout, parts, products, windows
from .context import Context, OnnxNode
from .general import GENERAL
from .general.padded.counts import fold
from .general.padded.rules import import_rows, prepare
from .general.padded.sizes import with_sizes
from .general.padded.whole_numbers import mark
from .general.sequences import SEQUENCES
from .operands import check_operands, result_types

OPERATORS: dict[str, Callable[[OnnxNode, Context], None]] = {
    "Add": binary.add,
    "AveragePool": windows.average_pool,
    "BatchNormalization": products.batch_normalization,
    "Cast": elementwise.cast,
    "CastLike": elementwise.cast_like,
    "Clip": elementwise.clip,
    "Concat": elementwise.concat,
    "Constant": folding.constant,
    "Conv": windows.conv,
    "Div": binary.div,
    "Dropout": elementwise.dropout,
    "Flatten": layout.flatten,
    "Gather": parts.gather,
    "Gemm": products.gemm,
    "GlobalAveragePool": windows.global_average_pool,
    "HardSigmoid": elementwise.hard_sigmoid,
    "HardSwish": elementwise.hard_swish,
    "Identity": elementwise.identity,
    "InstanceNormalization": images.instance_normalization,
    "LRN": products.lrn,
    "LeakyRelu": elementwise.leaky_relu,
    "MatMul": products.matmul,
    "MaxPool": windows.max_pool,
    "Mul": binary.mul,
    "Pad": images.pad,
    "ReduceMean": windows.reduce_mean,
    "Relu": elementwise.relu,
    "Reshape": layout.reshape,
    "Resize": images.resize,
    "Shape": folding.shape,
    "Sigmoid": elementwise.sigmoid,
    "Slice": parts.slice_,
    "Softmax": elementwise.softmax,
    "Split": parts.split,
    "Squeeze": layout.squeeze,
    "Sub": binary.sub,
    "Transpose": layout.transpose,
    "Unsqueeze": layout.unsqueeze,
    "Upsample": images.upsample,
}


STANDARD_DOMAINS = ("", "ai.onnx")
CLASSICAL_DOMAIN = "ai.onnx.ml"
SUPPORTED = frozenset({*OPERATORS, *GENERAL, *folding.FOLDS, *control.CONTROL, *SEQUENCES, "Unique"})


def is_known(op: str, domain: str) -> bool:
    return domain in STANDARD_DOMAINS and op in SUPPORTED


def check_known(node: OnnxNode, domain: str, *, constant: bool = False) -> None:
    """Raise UnsupportedNode, which says what to do instead, for an operator that the import does not know; `constant`:
    its inputs are, so that ONNX's reference implementation may know it."""
    if is_known(node.op, domain):
        return
    if constant and domain in STANDARD_DOMAINS and folding.can_compute(node):
        return
    if domain == CLASSICAL_DOMAIN:
        node.reject(
            f"{domain} is classical machine learning (trees, support vectors, scalers, encoders), and only neural "
            "networks are compiled: run this model with onnxruntime"
        )
    where = "" if domain in STANDARD_DOMAINS else f" of domain {domain!r}"
    if where == "" and node.op in folding.RANDOM:
        node.reject(
            "it draws numbers that are others in every run, and no result could be checked: let the network take them "
            "as an input (in PyTorch an argument of forward instead of torch.rand or torch.randn), and export it again"
        )
    if where == "" and not onnx.defs.has(node.op):
        node.reject(
            "ONNX has no such operator (tf2onnx leaves those of TensorFlow that it cannot convert): write this "
            "part of the network in other operations, and export it again"
        )
    if domain.startswith("com.microsoft"):
        node.reject(
            f"not supported{where}, as onnxruntime's tools write it: bring the model as it was before, or saved with "
            "ORT_ENABLE_BASIC"
        )
    close = get_close_matches(node.op, SUPPORTED, n=1, cutoff=0.8)
    hint = f"; did you mean {close[0]}?" if close else ""
    node.reject(f"not supported{where}{hint}: export the model without it (docs/limits.md lists what is known)")


def import_node(node: OnnxNode, domain: str, to: Context) -> None:
    """Emit what one ONNX node means. Raises ModelError, and UnsupportedNode with what is known instead."""
    constant = all(not name or name in to.constants for name in node.inputs)
    check_known(node, domain, constant=constant)
    if not any(node.outputs):
        return
    first = len(to.nodes)
    node = with_sizes(node, to)
    if fold(node, to):
        return
    padded = prepare(node, to)
    check_operands(node, to)
    if padded:
        import_rows(node, to, _emit)
    elif constant and node.op in folding.FOLDS:
        folding.fold(node, to)
    elif constant and node.op not in folding.OF_NO_OPERANDS and folding.can_compute(node):
        if not constant_nodes.computed(node, to, _emit):
            folding.compute(node, to)
    else:
        _emit(node, to)
    mark(node, to, to.nodes[first:])
    to.types |= {name: kind for name, kind in result_types(node, to).items() if name in to.shapes}


def _emit(node: OnnxNode, to: Context) -> None:
    """Emit a node by kernels of its own, or else in general operations."""
    before = len(to.nodes), len(to.shapes), len(to.weights)
    if node.op in OPERATORS:
        try:
            if len(node.outputs) < 2 or node.op == "Split":
                OPERATORS[node.op](node, to)
                return
        except UnsupportedNode:
            if node.op not in GENERAL:
                raise
        to.undo(*before)
    if node.op not in GENERAL:
        node.reject(f"supported only where every input is a constant; inputs are {', '.join(node.inputs)}")
    GENERAL[node.op](node, to)
