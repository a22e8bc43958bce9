"""Ensembles of decision trees: all trees and rows go down one level at a time, by tables of all nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernels.errors import ModelError
from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.general.steps import Operand, Steps
from kernels.ir import compositions as c
from kernels.ir.expressions import Expression

from .results import label, labels_of, rows, transformed

MODES: dict[str, Expression] = {
    "BRANCH_LEQ": c.less_or_equal("a", "b"),
    "BRANCH_LT": ("less", "a", "b"),
    "BRANCH_GTE": c.less_or_equal("b", "a"),
    "BRANCH_GT": ("less", "b", "a"),
    "BRANCH_EQ": ("equal", "a", "b"),
    "BRANCH_NEQ": c.unequal("a", "b"),
}
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


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
    modes: AnyArray
    """Of the branches, their places among `MODES`."""
    roots: AnyArray
    depth: int


def listed(node: OnnxNode, key: str) -> AnyArray:
    """A list of numbers, in single precision or, as a tensor, in double; empty where it is absent."""
    return np.asarray(node.attributes.get(f"{key}_as_tensor", node.attributes.get(key, ())))


def _forest(node: OnnxNode) -> Forest:
    def of_nodes(key: str) -> AnyArray:
        return listed(node, f"nodes_{key}")

    trees, ids, modes = of_nodes("treeids"), of_nodes("nodeids"), [_text(mode) for mode in of_nodes("modes")]
    number = {(int(tree), int(own)): place for place, (tree, own) in enumerate(zip(trees, ids, strict=True))}
    kinds = sorted({*modes} - {"LEAF"})
    if not kinds or not {*kinds} <= {*MODES}:
        node.reject(f"branches {kinds}; supported: {', '.join(MODES)}")
    inner = np.asarray([mode != "LEAF" for mode in modes])
    ways = []
    for goal in (of_nodes("truenodeids"), of_nodes("falsenodeids")):
        steps = zip(trees, goal, inner, strict=True)
        ways.append(np.asarray([number[int(t), int(to)] if i else at for at, (t, to, i) in enumerate(steps)]))
    roots = np.setdiff1d(np.arange(len(ids)), np.concatenate([way[inner] for way in ways]))
    missing, kind = of_nodes("missing_value_tracks_true"), np.asarray([mode_number(mode, kinds) for mode in modes])
    return Forest(
        number, np.where(inner, of_nodes("featureids"), 0), in_single(np.where(inner, of_nodes("values"), 0.0), kind),
        missing if missing.size else np.zeros(len(ids)), ways[0], ways[1], kind, roots, depth_of(node, roots, ways),
    )  # fmt: skip


def mode_number(mode: str, kinds: Sequence[str]) -> int:
    """A leaf takes that of a branch: there is nothing to choose."""
    return [*MODES].index(mode if mode in MODES else kinds[0])


def in_single(values: AnyArray, modes: AnyArray) -> AnyArray:
    """Thresholds with which numbers in single precision compare as they do with these in double: x <= t is
    x <= (t rounded down), x < t is x < (t rounded up), and no x equals a t that has more bits."""
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
    down = np.where(nearest > values, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    up = np.where(nearest < values, np.nextafter(nearest, np.float32(np.inf)), nearest)
    same = np.where(nearest == values, nearest, np.float32(np.nan))
    by_mode = {"BRANCH_LEQ": down, "BRANCH_GT": down, "BRANCH_LT": up, "BRANCH_GTE": up}
    return np.choose(modes, [by_mode.get(mode, same) for mode in MODES])


def _text(mode: object) -> str:
    return mode.decode() if isinstance(mode, bytes) else str(mode)


def depth_of(node: OnnxNode, roots: AnyArray, ways: list[AnyArray]) -> int:
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
    tables = (forest.values, forest.missing, forest.modes, forest.yes, forest.no)
    read = s.pick(x, 1, forest.features[forest.roots])
    at = ""
    for level in range(forest.depth):
        if level:
            places = s.map(("add", "a", "b"), s.gather(s.constant(forest.features), at, 0), starts)
            read = s.gather(flat, places, 0)
        here = [_entries(s, table, at or forest.roots) for table in tables]
        hit = s.map(_condition(forest), read, *here[:3])
        at = s.map(("select", "a", "b", "c"), hit, here[3], here[4])
    return at


def _entries(s: Steps, table: AnyArray, at: str | AnyArray) -> Operand:
    """Of a table whose entries are all one number, that number."""
    if (table == table[0]).all():
        return float(table[0])
    return s.gather(s.constant(table, nan=True), at, 0) if isinstance(at, str) else s.constant(table[at], nan=True)


def _condition(forest: Forest) -> Expression:
    """Whether a row goes the way of `yes`: a its number, b the node's, c whether a missing one does, d the mode."""
    *others, last = sorted(set(forest.modes.tolist()))
    conditions = [*MODES.values()]
    found = conditions[last]
    for number in others:
        found = ("select", ("equal", "d", float(number)), conditions[number], found)
    return ("max", found, ("select", c.is_nan("a"), "c", 0.0)) if forest.missing.any() else found


def weighed(
    s: Steps, forest: Forest, places: AnyArray, kinds: AnyArray, weights: AnyArray, count: int, how: str
) -> str:
    """What the leaves at these places weigh for each of `count` classes or targets, over all trees."""
    beyond = 1 + 2 * float(np.abs(weights).max(initial=0))  # what no leaf weighs: it is zero in the end
    start, join = {"MAX": (-beyond, np.maximum), "MIN": (beyond, np.minimum)}.get(how, (0.0, np.add))
    table = np.full((len(forest.yes), count), start)
    join.at(table, (places, kinds), weights)
    leaves = s.gather(s.constant(table), _leaves(s, forest), 0)
    found = s.reduce(leaves, [1], how.lower() if start else "sum", keep=False)
    if start:
        found = s.map(("select", ("less", ("abs", "a"), beyond - 0.5), "a", 0.0), found)
    share, base = 1 / len(forest.roots) if how == "AVERAGE" else 1.0, listed(s.node, "base_values")[:count]
    return s.map(("add", ("mul", "a", share), "b"), found, base if base.size else np.zeros(1))


def _sums(s: Steps, forest: Forest, what: str, count: int) -> str:
    place = [
        forest.number[int(tree), int(own)]
        for tree, own in zip(s.attribute(f"{what}_treeids"), s.attribute(f"{what}_nodeids"), strict=True)
    ]
    how = str(s.attribute("aggregate_function", "SUM"))
    if how not in AGGREGATES:
        s.node.reject(f"aggregate_function {how}; supported: {', '.join(AGGREGATES)}")
    kinds = np.asarray(s.attribute(f"{what}_ids"))
    return weighed(s, forest, np.asarray(place), kinds, listed(s.node, f"{what}_weights"), count, how)


def regressor(node: OnnxNode, to: Context) -> None:
    s = Steps(node, to)
    s.end(transformed(s, _sums(s, _forest(node), "target", int(s.attribute("n_targets", 1)))))


def classifier(node: OnnxNode, to: Context) -> None:
    """Labels and scores; of two classes leaves weigh one alone, or the other by its negative."""
    s = Steps(node, to)
    labels = labels_of(node, "classlabels_int64s")
    forest, kinds = _forest(node), {*map(int, s.attribute("class_ids"))}
    if len(labels) == 2 and len(kinds) == 1:
        scores = s.slice(_sums(s, forest, "class", 1 + max(kinds)), 1, max(kinds), 1 + max(kinds))
        positive = listed(node, "class_weights").min() >= 0
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
    sums = np.bincount(places.reshape(-1), listed(s.node, "class_weights").astype(np.float64))
    return not sums.any() and not listed(s.node, "base_values").sum()
