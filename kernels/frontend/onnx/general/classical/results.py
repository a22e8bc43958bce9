"""How scores become what a model gives: labels and probabilities."""

from __future__ import annotations

import numpy as np

from kernels.frontend.onnx.context import AnyArray, OnnxNode
from kernels.frontend.onnx.general.steps import MAX_PLACES, Steps
from kernels.ir import compositions as c


def numbers(s: Steps, key: str) -> AnyArray:
    """An attribute that is a list; empty where it is absent."""
    return np.asarray(s.attribute(key, ()), np.float64)


def rows(s: Steps) -> tuple[str, int, int]:
    """The input as numbers x features, and both."""
    shape = s.shape(s.operand(0))
    count, features = (1, shape[0]) if len(shape) == 1 else (shape[0], int(np.prod(shape[1:])))
    return s.reshape(s.operand(0), (count, features)), count, features


def labels_of(node: OnnxNode, key: str) -> AnyArray:
    """The classes' numbers. Raises UnsupportedNode where they are text."""
    if node.attributes.get("classlabels_strings"):
        node.reject("its labels are text, and results are numbers: train the model with numbers as labels")
    found = np.asarray(node.attributes.get(key, ()), np.int64)
    if np.abs(found).max(initial=0) > MAX_PLACES:
        node.reject("its labels are beyond 2^24, which fp32 does not hold: number the classes anew")
    return found


def label(s: Steps, scores: str, labels: AnyArray) -> str:
    """The label of the largest score of each row."""
    best = s.reduce(scores, [1], "argmax", keep=False)
    return best if np.array_equal(labels, np.arange(len(labels))) else s.gather(s.constant(labels), best, 0)


def transformed(s: Steps, scores: str, kind: str = "") -> str:
    """By the node's `post_transform`, or by `kind`."""
    kind = kind or str(s.attribute("post_transform", "NONE"))
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return s.map(c.sigmoid("a"), scores)
    if kind != "SOFTMAX":
        s.node.reject(f"post_transform {kind}; supported: NONE, LOGISTIC, SOFTMAX")
    return s.emit("softmax", (scores,), {"axis": 1})
