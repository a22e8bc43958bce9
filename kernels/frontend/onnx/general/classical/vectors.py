"""Support vectors: coefficients times kernels, of numbers and of classes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.general.steps import Steps
from kernels.ir.expressions import Expression

from .probabilities import coupled
from .results import label, labels_of, numbers, rows, transformed


def svm_regressor(node: OnnxNode, to: Context) -> None:
    """Coefficients times kernels with the support vectors; without vectors a linear model."""
    s = Steps(node, to)
    if s.attribute("one_class", 0):
        node.reject("one_class is not supported")
    x, count, features = rows(s)
    weights, count_of_vectors = numbers(s, "coefficients"), int(s.attribute("n_supports", 0))
    if count_of_vectors:
        vectors, order = numbers(s, "support_vectors").reshape(count_of_vectors, features), _mixed(weights < 0)
        x, weights = _kernel(s, x, count, vectors[order]), weights[order]
    found = s.matmul(x, s.constant(weights.reshape(-1, 1), f"{node.name}.coefficients"))
    s.end(transformed(s, s.map(("add", "a", "b"), found, np.resize(numbers(s, "rho"), 1))))


def svm_classifier(node: OnnxNode, to: Context) -> None:
    """Each pair of classes has a score, and gives one of the two a vote; the first class with most votes is the label.

    Scores are those of the pairs; of two classes the negative one as well, as onnxruntime gives them. A model that
    knows of probabilities gives those of classes instead.
    """
    s = Steps(node, to)
    labels = labels_of(node, "classlabels_ints")
    counts = numbers(s, "vectors_per_class").astype(np.int64)
    if not counts.size:
        node.reject("a linear one without support vectors is not supported: train a LinearSVC instead")
    x, count, features = rows(s)
    classes, total = len(labels), int(counts.sum())
    pairs = list(combinations(range(classes), 2))
    sizes = [numbers(s, key).size for key in ("coefficients", "support_vectors", "rho")]
    if len(counts) != classes or classes < 2 or sizes != [(classes - 1) * total, total * features, len(pairs)]:
        raise ModelError(
            f"node {node.name!r} ({node.op}): {sizes} coefficients, numbers in vectors and offsets do not fit "
            f"{total} vectors of {features} numbers and {classes} classes"
        )
    weights, votes = _pairs(numbers(s, "coefficients").reshape(classes - 1, total), counts, pairs)
    order = _mixed(np.repeat(np.arange(classes), counts))
    found = _kernel(s, x, count, numbers(s, "support_vectors").reshape(total, features)[order])
    found = s.matmul(found, s.constant(weights[order], f"{node.name}.coefficients"))
    found = s.map(("add", "a", "b"), found, numbers(s, "rho"))
    first = s.matmul(s.map(("less", 0.0, "a"), found), s.constant(votes, f"{node.name}.votes"))
    s.end(label(s, s.map(("add", "a", "b"), first, np.maximum(-votes, 0).sum(axis=0)), labels))
    if node.attributes.get("prob_a"):
        slopes, offsets = numbers(s, "prob_a"), numbers(s, "prob_b")
        if not slopes.size == offsets.size == len(pairs):
            raise ModelError(
                f"node {node.name!r} ({node.op}): {slopes.size} prob_a and {offsets.size} prob_b for {len(pairs)} pairs"
            )
        s.end(transformed(s, coupled(s, found, classes, slopes, offsets)), 1)
    else:
        s.end(_both(s, found) if classes == 2 else transformed(s, found), 1)
    to.types[node.outputs[0]] = np.dtype(np.int64)


def _pairs(coefficients: AnyArray, counts: AnyArray, pairs: list[tuple[int, int]]) -> tuple[AnyArray, AnyArray]:
    """Of what each pair's score is a sum (vectors x pairs), and whose vote moves to whom with it (pairs x classes)."""
    ends = np.cumsum(counts)
    weights, votes = np.zeros((ends[-1], len(pairs))), np.zeros((len(pairs), len(counts)))
    for pair, (one, other) in enumerate(pairs):
        for own, row in ((one, other - 1), (other, one)):
            part = slice(ends[own] - counts[own], ends[own])
            weights[part, pair] = coefficients[row, part]
        votes[pair, one], votes[pair, other] = 1, -1
    return weights, votes


def _mixed(kinds: AnyArray) -> AnyArray:
    """An order in which vectors of each kind are spread evenly: as terms of one kind have one sign, sums of one kind
    after the other would be far larger on their way than in the end, and rounded as such."""
    places = np.empty(len(kinds))
    for kind in np.unique(kinds):
        own = np.flatnonzero(kinds == kind)
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
    return np.argsort(places, kind="stable")


def _both(s: Steps, scores: str) -> str:
    """Of two classes one score becomes two."""
    kind = str(s.attribute("post_transform", "NONE"))
    if kind not in ("NONE", "LOGISTIC", "SOFTMAX"):
        s.node.reject(f"post_transform {kind}; supported: NONE, LOGISTIC, SOFTMAX")
    if kind == "SOFTMAX":  # of one score onnxruntime makes no softmax
        return s.concat([s.map(("sub", 1.0, "a"), scores), scores], 1)
    return transformed(s, s.concat([s.map(("neg", "a"), scores), scores], 1))


def _kernel(s: Steps, x: str, count: int, vectors: AnyArray) -> str:
    """Rows x vectors."""
    kind = str(s.attribute("kernel_type", "LINEAR"))
    gamma, offset, degree = [float(each) for each in s.attribute("kernel_params", (0.0, 0.0, 3.0))]
    if kind == "RBF":
        apart = s.map(("sub", "a", "b"), s.reshape(x, (count, 1, vectors.shape[1])), vectors[None])
        far = s.reduce(s.map(("mul", "a", "a"), apart), [2], "sum", keep=False)
        return s.map(("exp", ("mul", "a", -gamma)), far)
    product = s.matmul(x, s.constant(vectors.T, f"{s.node.name}.vectors"))
    scaled: Any = ("add", ("mul", "a", gamma), offset)
    known: dict[str, Expression] = {"LINEAR": "a", "POLY": ("pow", scaled, degree), "SIGMOID": ("tanh", scaled)}
    if kind not in known:
        s.node.reject(f"kernel_type {kind}; supported: RBF, {', '.join(known)}")
    return product if kind == "LINEAR" else s.map(known[kind], product)
