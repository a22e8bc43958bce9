"""Scaling, choosing features and linear models."""

from __future__ import annotations

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import Context, OnnxNode
from kernels.frontend.onnx.general.placing import inside
from kernels.frontend.onnx.general.steps import Steps
from kernels.ir.expressions import Expression

from .results import label, labels_of, numbers, rows, transformed


def zip_map(node: OnnxNode, to: Context) -> None:
    """A table of labels for each row: its values, as the tensor that they come from."""
    s = Steps(node, to)
    s.end(s.operand(0))


def array_feature_extractor(node: OnnxNode, to: Context) -> None:
    """Elements along the last axis."""
    s = Steps(node, to)
    x, y = s.operand(0), s.operand(1)
    if (known := s.value(x)) is not None and known.dtype.kind not in "biuf":
        node.reject("it chooses among texts, and results are numbers: train the model with numbers as labels")
    last, places = len(s.shape(x)) - 1, s.value(y)
    if places is not None:
        found = s.pick(x, last, inside(node, places.reshape(-1), s.shape(x)[last]))
    else:
        found = s.gather(x, s.reshape(y, (int(np.prod(s.shape(y))),)), last)
    s.end(s.reshape(found, (1, -1)) if last < 0 else found if last else s.reshape(found, (1, *s.shape(found))))
    to.types[node.outputs[0]] = to.type_of(x)


def scaler(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    offset, scale = (np.asarray(s.attribute(key, (usual,))) for key, usual in (("offset", 0.0), ("scale", 1.0)))
    s.end(s.map(("mul", ("sub", "a", "b"), "c"), s.operand(0), offset, scale))


def normalizer(node: OnnxNode, to: Context) -> None:
    """Each row by its largest number, or by its norm; a row of zeros stays one."""
    s = Steps(node, to)
    x, kind = s.operand(0), str(s.attribute("norm", "MAX"))
    last = len(s.shape(x)) - 1
    each: dict[str, tuple[Expression, str, Expression]] = {
        "MAX": (("add", "a", 0.0), "max", ("add", "a", 0.0)),
        "L1": (("abs", "a"), "sum", ("add", "a", 0.0)),
        "L2": (("mul", "a", "a"), "sum", ("sqrt", "a")),
    }
    if kind not in each:
        node.reject(f"norm {kind}; supported: {', '.join(each)}")
    before, how, after = each[kind]
    size = s.map(after, s.reduce(s.map(before, x), [last], how))
    s.end(s.map(("div", "a", ("select", ("equal", "b", 0.0), 1.0, "b")), x, size))


def linear_regressor(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(transformed(s, _scores(s, int(s.attribute("targets", 1)))))


def linear_classifier(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    labels = labels_of(node, "classlabels_ints")
    scores = _scores(s, len(labels))
    s.end(label(s, scores, labels))
    s.end(transformed(s, scores), 1)
    to.types[node.outputs[0]] = np.dtype(np.int64)


def _scores(s: Steps, count: int) -> str:
    """Rows x targets. Raises ModelError where the coefficients are not so many."""
    x, _, features = rows(s)
    weights = numbers(s, "coefficients")
    if weights.size != count * features:
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): {weights.size} coefficients; expected {count} x {features}"
        )
    found = s.matmul(x, s.constant(weights.reshape(count, features).T, f"{s.node.name}.coefficients"))
    return s.map(("add", "a", "b"), found, np.resize(numbers(s, "intercepts"), count)) if _given(s) else found


def _given(s: Steps) -> bool:
    return bool(np.size(s.attribute("intercepts", ())))
