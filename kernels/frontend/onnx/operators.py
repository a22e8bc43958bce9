"""Every ONNX operator that the import knows, by name."""

from __future__ import annotations

from collections.abc import Callable

from kernels.errors import ModelError

from . import binary, elementwise, folding, images, layout, parts, products, windows
from .context import Context, OnnxNode
from .operands import check_operands

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


def is_known(op: str, domain: str) -> bool:
    return domain in STANDARD_DOMAINS and (op in OPERATORS or op in folding.FOLDS)


def import_node(node: OnnxNode, domain: str, to: Context) -> None:
    """Emit what one ONNX node means. Raises ModelError, and UnsupportedNode with the list of what is supported."""
    if not is_known(node.op, domain):
        where = "" if domain in STANDARD_DOMAINS else f" of domain {domain!r}"
        node.reject(
            f"not supported{where}; supported are {', '.join(sorted(OPERATORS))}; "
            f"on constants also {', '.join(sorted(set(folding.FOLDS) - set(OPERATORS)))}"
        )
    if not node.outputs[0]:
        raise ModelError(f"node {node.name!r} ({node.op}) has no output; the model is damaged")
    check_operands(node, to)
    if node.op in folding.FOLDS and all(not name or name in to.constants for name in node.inputs):
        folding.fold(node, to)
    elif node.op in OPERATORS:
        OPERATORS[node.op](node, to)
    else:
        node.reject(f"supported only where every input is a constant; inputs are {', '.join(node.inputs)}")
