"""`TreeEnsemble` of opset 5 of `ai.onnx.ml`: branches and leaves in lists of their own, modes by number, and sets."""

from __future__ import annotations

import numpy as np

from kernels.frontend.onnx.context import AnyArray, Context, OnnxNode
from kernels.frontend.onnx.general.steps import Steps

from .results import transformed
from .trees import AGGREGATES, MODES, Forest, depth_of, in_single, listed, weighed

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MEMBER = len(MODES)
"""The mode of a branch that asks whether a feature is in a set: as many branches, one an element."""


def tree_ensemble(node: OnnxNode, to: Context) -> None:
    """Each row's sums, means, least or largest weights of its leaves, a target a column."""
    s = Steps(node, to)
    transform, how = (int(s.attribute(key, usual)) for key, usual in (("post_transform", 0), ("aggregate_function", 1)))
    if not (0 <= transform < len(_TRANSFORMS) and 0 <= how < len(AGGREGATES)):
        node.reject(f"post_transform {transform} and aggregate_function {how}; ONNX knows 0 to 4 and 0 to 3")
    forest = _forest(node)
    targets, weights = listed(node, "leaf_targetids"), listed(node, "leaf_weights")
    places = len(forest.yes) - len(weights) + np.arange(len(weights))
    found = weighed(s, forest, places, targets, weights, int(s.attribute("n_targets", 1)), AGGREGATES[how])
    s.end(transformed(s, found, _TRANSFORMS[transform]))
    to.types[node.outputs[0]] = to.type_of(node.inputs[0])


def _forest(node: OnnxNode) -> Forest:
    """Branches come first, then leaves."""
    modes, splits, features = (listed(node, f"nodes_{key}") for key in ("modes", "splits", "featureids"))
    leaves, branches = len(listed(node, "leaf_weights")), len(modes)
    ways = []
    for side in ("true", "false"):
        goal, is_leaf = listed(node, f"nodes_{side}nodeids"), listed(node, f"nodes_{side}leafs") != 0
        if not np.all((goal >= 0) & (goal < np.where(is_leaf, leaves, branches))):
            node.reject(f"nodes_{side}nodeids name branches or leaves that are not there; the model is damaged")
        ways.append(np.where(is_leaf, goal - leaves, goal))  # a leaf by its place from the end
    missing = listed(node, "nodes_missing_value_tracks_true")
    table = np.stack([modes, features, missing if missing.size else np.zeros(branches, int), *ways])
    table, splits = _without_sets(table.astype(np.int64), splits.astype(np.float64), listed(node, "membership_values"))
    if table[0].max() >= _MEMBER:
        node.reject(f"nodes_modes {table[0].max()}; ONNX knows 0 to {_MEMBER}")
    whole = np.concatenate([table, np.zeros((5, leaves), np.int64)], axis=1)
    whole[3:, table.shape[1] :] = np.arange(-leaves, 0)
    ways = [np.where(way < 0, way + whole.shape[1], way) for way in whole[3:]]
    whole[0, table.shape[1] :] = table[0, 0]
    roots = listed(node, "tree_roots")
    values = in_single(np.concatenate([splits, np.zeros(leaves)]), whole[0])
    return Forest({}, whole[1], values, whole[2], ways[0], ways[1], whole[0], roots, depth_of(node, roots, ways))


def _without_sets(table: AnyArray, splits: AnyArray, members: AnyArray) -> tuple[AnyArray, AnyArray]:
    """A branch that asks for a set as a chain of branches that ask for its elements; sets end in NaN.

    `table`: rows of modes, features, ways of what is missing, and places to go, a branch a column.
    """
    ends = np.flatnonzero(np.isnan(members))
    sets = np.split(members, ends + 1)
    equal = [*MODES].index("BRANCH_EQ")
    columns, values = [*table.T], [*splits]
    for place, own in zip(np.flatnonzero(table[0] == _MEMBER), sets, strict=False):
        mode_feature_missing, (yes, no) = (equal, *table[1:3, place]), table[3:, place]
        elements = [*own[~np.isnan(own)]] or [np.nan]
        chain = [int(place), *range(len(columns), len(columns) + len(elements) - 1)]
        columns += [columns[place]] * (len(elements) - 1)
        values += [0.0] * (len(elements) - 1)
        for own_place, behind, element in zip(chain, [*chain[1:], int(no)], elements, strict=True):
            columns[own_place] = np.asarray([*mode_feature_missing, yes, behind])
            values[own_place] = element
    return np.stack(columns, axis=1), np.asarray(values)
