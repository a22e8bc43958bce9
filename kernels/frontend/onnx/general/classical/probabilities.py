"""Probabilities of classes from the scores of their pairs.

A score becomes a probability by a sigmoid (J. Platt, Probabilistic Outputs for Support Vector Machines, 1999). Those of
pairs are coupled by an iteration that ends where little changes (T.-F. Wu, C.-J. Lin, R. Weng, Probability Estimates
for Multi-class Classification by Pairwise Coupling, 2004, algorithm 2), as in libsvm and onnxruntime.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from kernels.frontend.onnx.context import AnyArray
from kernels.frontend.onnx.general.steps import Steps
from kernels.ir import compositions as c

_TURNS = 6
"""Written out; of random scores none took more than 4. A row that is not done then is infinite."""
_LEAST = 1e-7
_MOST_CLASSES = 24
"""Each turn is some nodes a class."""


def coupled(s: Steps, scores: str, classes: int, slopes: AnyArray, offsets: AnyArray) -> str:
    """Rows x classes, from rows x pairs. Raises UnsupportedNode for many classes."""
    if classes > _MOST_CLASSES:
        s.node.reject(
            f"probabilities of {classes} classes; at most {_MOST_CLASSES} are supported: train the model without them "
            "(probability=False), or wrap it in a CalibratedClassifierCV"
        )
    pair = c.clip(c.sigmoid(("neg", ("add", ("mul", "a", "b"), "c"))), _LEAST, 1 - _LEAST)
    matrix, own = _matrix(s, s.map(pair, scores, slopes, offsets), classes)
    p = s.map(("add", ("mul", "a", 0.0), 1 / classes), own)
    for turn in range(_TURNS + 1):
        rows = s.shape(p)[0]
        each = s.reduce(s.map(("mul", "a", "b"), matrix, s.reshape(p, (rows, 1, classes))), [2], "sum", keep=False)
        whole = s.reduce(s.map(("mul", "a", "b"), p, each), [1], "sum")
        error = s.reduce(s.map(("abs", ("sub", "a", "b")), each, whole), [1], "max")
        moved = _turn(s, matrix, own, p, each, whole) if turn < _TURNS else s.map(("div", "a", 0.0), p)
        p = s.map(("select", ("less", "a", 0.005 / classes), "b", "c"), error, p, moved)
    return p


def _matrix(s: Steps, pairs: str, classes: int) -> tuple[str, str]:
    """Rows x classes x classes: -r[i, j] r[j, i] beside the diagonal, of which the elements are given as well."""
    rows, count = s.shape(pairs)
    places = np.full((classes, classes), -1)
    for index, (one, other) in enumerate(combinations(range(classes), 2)):
        places[one, other], places[other, one] = index, count + index
    both = s.concat([pairs, s.map(("sub", 1.0, "a"), pairs)], 1)
    shape = rows, classes, classes
    first, second = (s.reshape(s.pick(both, 1, each.reshape(-1)), shape) for each in (places, places.T))
    own = s.reduce(s.map(("mul", "a", "a"), first), [1], "sum", keep=False)
    diagonal = s.reshape(own, (rows, classes, 1)), np.eye(classes)
    return s.map(("sub", ("mul", "c", "d"), ("mul", "a", "b")), first, second, *diagonal), own


def _turn(s: Steps, matrix: str, own: str, p: str, each: str, whole: str) -> str:
    """Every class once."""
    rows, classes = s.shape(p)
    for index in range(classes):
        row = s.reshape(s.slice(matrix, 1, index, index + 1), (rows, classes))
        size, left = (s.slice(x, 1, index, index + 1) for x in (own, each))
        step = s.map(("div", ("sub", "a", "b"), "c"), whole, left, size)
        more = ("add", "a", ("mul", "b", ("add", ("mul", "b", "c"), ("mul", 2.0, "d"))))
        share = ("add", 1.0, "b")
        whole = s.map(("div", ("div", more, share), share), whole, step, size, left)
        each = s.map(("div", ("add", "a", ("mul", "b", "c")), share), each, step, row)
        p = s.map(("div", ("add", "a", ("mul", "b", "c")), share), p, step, np.eye(classes)[index : index + 1])
    return p
