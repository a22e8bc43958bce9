"""Ensembles of decision trees: all trees and rows go down one level at a time, by tables of all nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.general.steps import Steps
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

from .results import label, labels_of, rows, transformed

_MODES: dict[str, Expression] = {
    "BRANCH_LEQ": c.less_or_equal("a", "b"),
    "BRANCH_LT": ("less", "a", "b"),
    "BRANCH_GTE": c.less_or_equal("b", "a"),
    "BRANCH_GT": ("less", "b", "a"),
    "BRANCH_EQ": ("equal", "a", "b"),
    "BRANCH_NEQ": c.unequal("a", "b"),
}


@dataclass(frozen=True)
class Forest:
    """Tables by a node's number among all trees'; a leaf leads to itself."""

    number: dict[tuple[int, int], int]
    features: AnyArray
    values: AnyArray
    missing: AnyArray
    """1 where a missing value goes the way of `yes`."""
    yes: AnyArray
    no: AnyArray
    roots: AnyArray
    depth: int
    condition: Expression


def _forest(node: OnnxNode) -> Forest:
    def listed(key: str) -> AnyArray:
        return np.asarray(node.attributes.get(f"nodes_{key}", ()))

    trees, ids, modes = listed("treeids"), listed("nodeids"), [_text(mode) for mode in listed("modes")]
    number = {(int(tree), int(own)): place for place, (tree, own) in enumerate(zip(trees, ids, strict=True))}
    kinds = sorted({*modes} - {"LEAF"})
    if len(kinds) != 1 or kinds[0] not in _MODES:
        node.reject(f"branches {kinds}; supported: one of {', '.join(_MODES)} for all nodes")
    inner = np.asarray([mode != "LEAF" for mode in modes])
    ways = []
    for goal in (listed("truenodeids"), listed("falsenodeids")):
        steps = zip(trees, goal, inner, strict=True)
        ways.append(np.asarray([number[int(t), int(to)] if i else at for at, (t, to, i) in enumerate(steps)]))
    roots = np.setdiff1d(np.arange(len(ids)), np.concatenate([way[inner] for way in ways]))
    missing = listed("missing_value_tracks_true")
    return Forest(
        number, np.where(inner, listed("featureids"), 0), np.where(inner, listed("values"), 0.0),
        missing if missing.size else np.zeros(len(ids)), ways[0], ways[1], roots, _depth(node, roots, ways),
        _MODES[kinds[0]],
    )  # fmt: skip


def _text(mode: object) -> str:
    return mode.decode() if isinstance(mode, bytes) else str(mode)


def _depth(node: OnnxNode, roots: AnyArray, ways: list[AnyArray]) -> int:
    """Levels until every row is at a leaf. Raises ModelError where a tree never ends."""
    at = roots
    for depth in range(len(ways[0]) + 1):
        below = np.unique(np.concatenate([ways[0][at], ways[1][at]]))
        if np.array_equal(below, np.unique(at)):
            if (ways[0][at] == at).all():
                return depth
            break
        at = below
    raise ModelError(f"node {node.name!r} ({node.op}): its trees do not end in leaves; the model is damaged")


def _leaves(s: Steps, forest: Forest) -> str:
    """The number of the leaf of each row in each tree."""
    x, count, features = rows(s)
    if not forest.depth or forest.features.max() >= features:
        raise ModelError(
            f"node {s.node.name!r} ({s.node.op}): {features} features; its trees ask for others, or for none"
        )
    s.places(max(len(forest.yes), count * features))
    flat, starts = s.reshape(x, (count * features,)), np.arange(count)[:, None] * features
    tables = (forest.values, forest.missing, forest.yes, forest.no)
    read = s.pick(x, 1, forest.features[forest.roots])
    here: list[str | AnyArray] = [table[forest.roots] for table in tables]
    at = ""
    for level in range(forest.depth):
        if level:
            places = s.map(("add", "a", "b"), s.gather(s.constant(forest.features), at, 0), starts)
            read = s.gather(flat, places, 0)
            here = [s.gather(s.constant(table), at, 0) for table in tables]
        hit = s.map(_condition(forest), read, here[0], here[1])
        at = s.map(("select", "a", "b", "c"), hit, here[2], here[3])
    return at


def _condition(forest: Forest) -> Expression:
    """Whether a row goes the way of `yes`: a its number, b the node's, c whether a missing one does."""
    if not forest.missing.any():
        return forest.condition
    return ("select", c.is_nan("a"), "c", forest.condition)


def _sums(s: Steps, forest: Forest, what: str, count: int) -> str:
    """What the leaves weigh for each of `count` classes or targets, over all trees."""
    place = [
        forest.number[int(tree), int(own)]
        for tree, own in zip(s.attribute(f"{what}_treeids"), s.attribute(f"{what}_nodeids"), strict=True)
    ]
    table = np.zeros((len(forest.yes), count))
    np.add.at(table, (np.asarray(place), np.asarray(s.attribute(f"{what}_ids"))), s.attribute(f"{what}_weights"))
    how = str(s.attribute("aggregate_function", "SUM"))
    known = {"SUM": "sum", "AVERAGE": "sum", "MAX": "max", "MIN": "min"}
    if how not in known:
        s.node.reject(f"aggregate_function {how}; supported: {', '.join(known)}")
    found = s.reduce(s.gather(s.constant(table), _leaves(s, forest), 0), [1], known[how], keep=False)
    share = 1 / len(forest.roots) if how == "AVERAGE" else 1.0
    base = np.asarray(s.attribute("base_values", (0.0,)))
    return s.map(("add", ("mul", "a", share), "b"), found, base[:count])


def regressor(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    _check_form(node)
    s.end(transformed(s, _sums(s, _forest(node), "target", int(s.attribute("n_targets", 1)))))


def classifier(node: OnnxNode, to: Context) -> None:
    """Labels and scores; of two classes leaves weigh one alone, or the other by its negative."""
    s = Steps(node, to)
    _check_form(node)
    labels = labels_of(node, "classlabels_int64s")
    forest, kinds = _forest(node), {*map(int, s.attribute("class_ids"))}
    if len(labels) == 2 and len(kinds) == 1:
        scores = s.slice(_sums(s, forest, "class", 1 + max(kinds)), 1, max(kinds), 1 + max(kinds))
        positive = min(s.attribute("class_weights")) >= 0
        both = s.concat([s.map(("sub", 1.0 if positive else 0.0, "a"), scores), scores], 1)
        found, given = both, both if positive else transformed(s, both)
    elif len(labels) == 2 and not (_opposed(s) and list(labels) == [0, 1]):
        node.reject("leaves that weigh both of two classes are not supported, as runtimes disagree on the label")
    else:
        found = _sums(s, forest, "class", len(labels))
        given = transformed(s, found)
    s.end(label(s, found, labels))
    s.end(given, 1)
    to.types[node.outputs[0]] = np.dtype(np.int64)


def _opposed(s: Steps) -> bool:
    """Whether every leaf weighs two classes by a number and its negative, as CatBoost's do: then the larger score is
    the positive one."""
    leaves = np.stack([s.attribute("class_treeids"), s.attribute("class_nodeids")], axis=1)
    _, places = np.unique(leaves, axis=0, return_inverse=True)
    sums = np.bincount(places.reshape(-1), np.asarray(s.attribute("class_weights"), np.float64))
    return not sums.any() and not np.sum(s.attribute("base_values", (0.0,)))


def _check_form(node: OnnxNode) -> None:
    doubles = [key for key in node.attributes if key.endswith("_as_tensor")]
    if doubles:
        node.reject(f"{', '.join(doubles)}: only trees in single precision are supported")
