"""Operators of `ai.onnx.ml` with random numbers: what onnxruntime computes, by the reference and by the CPU backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from kernels.compile import compile_graph
from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.general.classical import CLASSICAL, DOMAIN
from kernels.options import Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent

from .onnx_cases import Case, imported, limits_here, through_agent

ROWS, FEATURES, CLASSES = 5, 6, 3
Drawn = tuple[str, list[str], dict[str, Any]]
"""Operator, outputs, attributes."""


def numbers(rng: np.random.Generator, count: int) -> list[float]:
    return [float(number) for number in np.asarray(rng.standard_normal(count), np.float32)]


def tree_nodes(rng: np.random.Generator, trees: int, mode: str) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Nodes of trees that end at random, and their leaves."""
    nodes: dict[str, list[Any]] = {key: [] for key in (
        "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
        "missing_value_tracks_true",
    )}  # fmt: skip
    leaves = []
    for tree in range(trees):
        waiting, made = [(0, 0)], 1
        while waiting:
            own, depth = waiting.pop()
            leaf = depth == 4 or (depth > 0 and rng.random() < 0.3)
            if leaf:
                leaves.append((tree, own))
            else:
                waiting += [(made, depth + 1), (made + 1, depth + 1)]
            row = (tree, own, 0 if leaf else int(rng.integers(FEATURES)), 0.0 if leaf else numbers(rng, 1)[0],
                   "LEAF" if leaf else mode, 0 if leaf else made, 0 if leaf else made + 1,
                   0 if leaf else int(rng.integers(2)))  # fmt: skip
            for key, value in zip(nodes, row, strict=True):
                nodes[key].append(value)
            made += 0 if leaf else 2
    return {f"nodes_{key}": values for key, values in nodes.items()}, leaves


def leaf_weights(
    rng: np.random.Generator, leaves: list[tuple[int, int]], what: str, kinds: list[int]
) -> dict[str, Any]:
    every = [(tree, own, kind) for tree, own in leaves for kind in kinds]
    columns = {name: [row[k] for row in every] for k, name in enumerate(("treeids", "nodeids", "ids"))}
    weights = {f"{what}_weights": numbers(rng, len(every))}
    return {f"{what}_{name}": column for name, column in columns.items()} | weights


def regressor(rng: np.random.Generator, mode: str, how: str) -> Drawn:
    nodes, leaves = tree_nodes(rng, 4, mode)
    weights = leaf_weights(rng, leaves, "target", [0, 1])
    return "TreeEnsembleRegressor", ["y"], {
        **nodes, **weights, "n_targets": 2, "aggregate_function": how, "base_values": numbers(rng, 2)
    }  # fmt: skip


def ensemble(rng: np.random.Generator, how: int, modes: list[int], kind: type[np.floating[Any]] = np.float32) -> Drawn:
    """Trees in the form of opset 5; mode 6 asks for a set. Two of three targets are weighed."""
    branches: list[list[Any]] = []
    leaves, members = 0, []

    def grow(depth: int) -> tuple[int, int]:
        """The place, and whether it is a leaf's."""
        nonlocal leaves
        if depth == 4 or (depth > 0 and rng.random() < 0.3):
            leaves += 1
            return leaves - 1, 1
        own, mode = len(branches), int(rng.choice(modes))
        branches.append([])
        if mode == 6:
            members.extend([*rng.integers(-2, 3, int(rng.integers(1, 4))), np.nan])
        ways = [number for _ in range(2) for number in grow(depth + 1)]
        split = 0.0 if mode == 6 else float(rng.standard_normal()) if mode < 4 else float(rng.integers(-1, 2))
        branches[own] = [int(rng.integers(FEATURES)), mode, split, int(rng.integers(2)), *ways]
        return own, 0

    roots = [grow(0)[0] for _ in range(4)]
    features, kinds, splits, missing, yes, yes_leaf, no, no_leaf = zip(*branches, strict=True)
    stored = onnx.numpy_helper.from_array
    return "TreeEnsemble", ["y"], {
        "n_targets": 3, "aggregate_function": how, "post_transform": 0, "tree_roots": roots,
        "nodes_featureids": features, "nodes_modes": stored(np.asarray(kinds, np.uint8)),
        "nodes_splits": stored(np.asarray(splits, kind)), "nodes_missing_value_tracks_true": missing,
        "nodes_truenodeids": yes, "nodes_trueleafs": yes_leaf, "nodes_falsenodeids": no, "nodes_falseleafs": no_leaf,
        "leaf_targetids": [int(each) for each in rng.integers(0, 2, leaves)],
        "leaf_weights": stored((rng.standard_normal(leaves) - 2).astype(kind)),
        "membership_values": stored(np.asarray(members, kind)),
    }  # fmt: skip


def classifier(rng: np.random.Generator, kinds: list[int], labels: list[int], transform: str) -> Drawn:
    nodes, leaves = tree_nodes(rng, 3, "BRANCH_LEQ")
    weights = leaf_weights(rng, leaves, "class", kinds)
    return "TreeEnsembleClassifier", ["label", "y"], {
        **nodes, **weights, "classlabels_int64s": labels, "post_transform": transform
    }  # fmt: skip


def opposed_leaves(rng: np.random.Generator) -> Drawn:
    """Each leaf weighs one of two classes, and the other by its negative."""
    operator, outputs, attributes = classifier(rng, [0, 1], [0, 1], "LOGISTIC")
    weights = attributes["class_weights"]
    weights[1::2] = [-weight for weight in weights[::2]]
    return operator, outputs, attributes


def linear(rng: np.random.Generator, transform: str) -> Drawn:
    return "LinearClassifier", ["label", "y"], {
        "coefficients": numbers(rng, CLASSES * FEATURES), "intercepts": numbers(rng, CLASSES),
        "classlabels_ints": [4, 2, 9], "post_transform": transform,
    }  # fmt: skip


def vectors(rng: np.random.Generator, kind: str) -> Drawn:
    return "SVMRegressor", ["y"], {
        "kernel_type": kind, "kernel_params": [0.3, 0.5, 3.0], "n_supports": 7, "rho": numbers(rng, 1),
        "coefficients": numbers(rng, 7), "support_vectors": numbers(rng, 7 * FEATURES),
    }  # fmt: skip


def voters(rng: np.random.Generator, kind: str, counts: list[int], transform: str = "NONE") -> Drawn:
    classes, total = len(counts), sum(counts)
    return "SVMClassifier", ["label", "y"], {
        "kernel_type": kind, "kernel_params": [0.3, 0.5, 3.0], "vectors_per_class": counts,
        "rho": numbers(rng, classes * (classes - 1) // 2), "coefficients": numbers(rng, (classes - 1) * total),
        "support_vectors": numbers(rng, total * FEATURES), "classlabels_ints": [4, 2, 9, 5][:classes],
        "post_transform": transform,
    }  # fmt: skip


def opposed(rng: np.random.Generator, op: str) -> Drawn:
    """Many vectors, of whose terms those of one sign come first and are far larger than their sum."""
    each = np.abs(rng.standard_normal(400)).astype(np.float32)
    each[200:] *= -each[:200].sum() / each[200:].sum()
    made = {"kernel_type": "RBF", "kernel_params": [0.02, 0.0, 3.0], "rho": [0.0], "coefficients": each.tolist(),
            "support_vectors": numbers(rng, 400 * FEATURES)}  # fmt: skip
    if op == "SVMRegressor":
        return op, ["y"], made | {"n_supports": 400}
    return op, ["label", "y"], made | {"vectors_per_class": [200, 200], "classlabels_ints": [0, 1]}


def coupled(rng: np.random.Generator, counts: list[int], slope: float) -> Drawn:
    operator, outputs, attributes = voters(rng, "RBF", counts)
    pairs = len(attributes["rho"])
    attributes |= {"prob_a": [-slope * float(each) for each in rng.random(pairs)], "prob_b": numbers(rng, pairs)}
    return operator, outputs, attributes


MISSING = ("leq", "gt", "lt", "imputer", "any_branch", "sum_of_trees")
WHOLE = ("mean_of_sets", "least_of_trees", "most_of_trees")
"""Given NaN; given NaN and whole numbers, of which onnxruntime alone takes 1.5 for an element of a set with 1."""


def any_branch(drawn: Drawn, rng: np.random.Generator) -> Drawn:
    """Branches of several kinds in one ensemble."""
    modes = drawn[2]["nodes_modes"]
    kinds = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    modes[:] = [mode if mode == "LEAF" else str(rng.choice(kinds)) for mode in modes]
    return drawn


DRAWS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "leq": lambda rng: regressor(rng, "BRANCH_LEQ", "AVERAGE"),
    "gt": lambda rng: regressor(rng, "BRANCH_GT", "SUM"),
    "lt": lambda rng: regressor(rng, "BRANCH_LT", "MAX"),
    "any_branch": lambda rng: any_branch(regressor(rng, "BRANCH_EQ", "SUM"), rng),
    "sum_of_trees": lambda rng: ensemble(rng, 1, [0, 1, 2, 3]),
    "mean_of_sets": lambda rng: ensemble(rng, 0, [0, 4, 5, 6]),
    "least_of_trees": lambda rng: ensemble(rng, 2, [3]),
    "most_of_trees": lambda rng: ensemble(rng, 3, [1, 6]),
    "classes": lambda rng: classifier(rng, [0, 1, 2], [7, 3, 5], "NONE"),
    "softmax": lambda rng: classifier(rng, [0, 1, 2], [0, 1, 2], "SOFTMAX"),
    "one_or_other": opposed_leaves,
    "one_of_two": lambda rng: classifier(rng, [0], [0, 1], "LOGISTIC"),
    "linear": lambda rng: linear(rng, "LOGISTIC"),
    "linear_softmax": lambda rng: linear(rng, "SOFTMAX"),
    "regression": lambda rng: (
        "LinearRegressor", ["y"], {"coefficients": numbers(rng, 12), "intercepts": numbers(rng, 2), "targets": 2}
    ),
    "rbf": lambda rng: vectors(rng, "RBF"),
    "poly": lambda rng: vectors(rng, "POLY"),
    "sigmoid": lambda rng: vectors(rng, "SIGMOID"),
    "dot": lambda rng: vectors(rng, "LINEAR"),
    "votes": lambda rng: voters(rng, "LINEAR", [3, 1, 4, 2]),
    "votes_rbf": lambda rng: voters(rng, "RBF", [3, 5, 4]),
    "votes_softmax": lambda rng: voters(rng, "POLY", [3, 2, 4], "SOFTMAX"),
    "votes_logistic": lambda rng: voters(rng, "SIGMOID", [3, 2, 4], "LOGISTIC"),
    "coupled": lambda rng: coupled(rng, [3, 1, 4, 2], 2.0),
    "coupled_steep": lambda rng: coupled(rng, [3, 5, 4], 60.0),
    "coupled_of_two": lambda rng: coupled(rng, [3, 5], 2.0),
    "votes_of_two": lambda rng: voters(rng, "RBF", [3, 4]),
    "logistic_of_two": lambda rng: voters(rng, "LINEAR", [2, 3], "LOGISTIC"),
    "softmax_of_two": lambda rng: voters(rng, "LINEAR", [2, 3], "SOFTMAX"),
    "scaler": lambda rng: ("Scaler", ["y"], {"offset": numbers(rng, FEATURES), "scale": numbers(rng, FEATURES)}),
    "binarizer": lambda rng: ("Binarizer", ["y"], {"threshold": numbers(rng, 1)[0]}),
    "imputer": lambda rng: (
        "Imputer", ["y"], {"imputed_value_floats": numbers(rng, FEATURES), "replaced_value_float": math.nan}
    ),
    "imputer_of_zeros": lambda rng: (
        "Imputer", ["y"], {"imputed_value_floats": numbers(rng, 1), "replaced_value_float": 0.0}
    ),
    "imputer_of_infinity": lambda rng: (
        "Imputer", ["y"], {"imputed_value_floats": numbers(rng, 1), "replaced_value_float": math.inf}
    ),
    "one_hot": lambda _: ("OneHotEncoder", ["y"], {"cats_int64s": [0, 2, -1, 1], "zeros": 1}),
    "labels": lambda rng: (
        "LabelEncoder", ["y"],
        {"keys_floats": [2.5, 0.0, -1.0], "values_floats": numbers(rng, 3), "default_float": numbers(rng, 1)[0]},
    ),
    **{f"norm_{kind}": lambda _, kind=kind: ("Normalizer", ["y"], {"norm": kind}) for kind in ("MAX", "L1", "L2")},
}  # fmt: skip


def model_of(drawn: Drawn, given_type: int = onnx.TensorProto.FLOAT, rows: int = ROWS) -> onnx.ModelProto:
    operator, outputs, attributes = drawn
    helper, numeric = onnx.helper, given_type if operator == "TreeEnsemble" else onnx.TensorProto.FLOAT
    given = [helper.make_tensor_value_info("x", given_type, (rows, FEATURES))]
    made = [
        helper.make_tensor_value_info(name, onnx.TensorProto.INT64 if name == "label" else numeric, None)
        for name in outputs
    ]
    node = helper.make_node(operator, ["x"], outputs, domain=DOMAIN, **attributes)
    sets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 5 if operator == "TreeEnsemble" else 3)]
    return helper.make_model(helper.make_graph([node], "one", given, made), opset_imports=sets, ir_version=9)


def case_of(name: str, model: onnx.ModelProto, x: np.ndarray[Any, Any]) -> Case:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    return Case(name, model, {"x": x}, dict(zip(names, session.run(None, {"x": x}), strict=True)))


def test_they_are_what_onnxruntime_computes(seed: int, tmp_path: Path, agent: Agent) -> None:
    rng = np.random.default_rng([seed, 82])
    x = np.asarray(rng.standard_normal((ROWS, FEATURES)), np.float32)
    x[1] = 0
    missing = x.copy()
    missing[2, :3] = np.nan
    given = {**dict.fromkeys(MISSING, missing), **dict.fromkeys(WHOLE, missing.round())}
    models = {name: model_of(draw(rng)) for name, draw in DRAWS.items()}
    found = [imported(case_of(name, model, given.get(name, x)), tmp_path / "m.onnx") for name, model in models.items()]
    assert not {one.case.name: one.wrong or one.refusals for one in found if one.wrong or not one.graphs}
    assert not through_agent(found, agent, "cpu")


@pytest.mark.parametrize("modes", [[0], [1], [2], [3], [4, 5, 0]])
def test_thresholds_in_double_precision_divide_single_numbers_alike(
    modes: list[int], seed: int, tmp_path: Path
) -> None:
    """Rows that lie on the thresholds and at the nearest single numbers on both sides of them."""
    rng = np.random.default_rng([seed, 84])
    drawn = ensemble(rng, 1, modes, np.float64)
    splits = onnx.numpy_helper.to_array(drawn[2]["nodes_splits"])
    near = splits.astype(np.float32)
    every = np.concatenate([near, np.nextafter(near, np.float32(9)), np.nextafter(near, np.float32(-9))])
    x = rng.permuted(np.tile(every, (FEATURES, 1)), axis=1).T
    model = model_of(drawn, onnx.TensorProto.DOUBLE, len(x))
    found = imported(case_of("doubles", model, x.astype(np.float64)), tmp_path / "m.onnx")
    assert found.graphs and not found.wrong


def test_trees_in_double_precision_are_taken_in_single(seed: int, tmp_path: Path) -> None:
    """As boosters' exporters write them for a table of doubles: numbers of nodes, leaves and bases as tensors."""
    rng = np.random.default_rng([seed, 85])
    operator, outputs, attributes = regressor(rng, "BRANCH_LEQ", "SUM")
    for key in ("nodes_values", "target_weights", "base_values"):
        numbers_of = np.asarray(attributes.pop(key), np.float64)
        attributes[f"{key}_as_tensor"] = onnx.numpy_helper.from_array(numbers_of + 1e-9 * rng.random(len(numbers_of)))
    model = model_of((operator, outputs, attributes), onnx.TensorProto.DOUBLE)
    x = rng.standard_normal((ROWS, FEATURES)).astype(np.float32).astype(np.float64)
    found = imported(case_of("doubles", model, x), tmp_path / "m.onnx")
    assert found.graphs and not found.wrong


def test_features_are_chosen_and_tables_of_labels_are_left_out(tmp_path: Path) -> None:
    helper, file = onnx.helper, tmp_path / "m.onnx"
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["labels", "best"], ["label"], domain=DOMAIN),
        helper.make_node("ZipMap", ["x"], ["table"], domain=DOMAIN, classlabels_int64s=list(range(FEATURES))),
    ]
    labels = onnx.numpy_helper.from_array(np.asarray([5, 3, 8, 1, 0, 2]), "labels")
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (ROWS, FEATURES))]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("label", "table")]
    graph = helper.make_graph(nodes, "one", given, outputs, [labels])
    sets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 3)]
    onnx.save(helper.make_model(graph, opset_imports=sets), file)
    x = np.asarray(np.random.default_rng(3).standard_normal((ROWS, FEATURES)), np.float32)
    found = evaluate(load_onnx(file), {"x": x})
    assert found["label"].shape == (1, ROWS)
    assert (found["label"][0] == np.asarray([5, 3, 8, 1, 0, 2])[x.argmax(1)]).all()
    assert np.array_equal(found["table"], x)


@pytest.mark.parametrize("op", ["SVMClassifier", "SVMRegressor"])
def test_small_sums_of_large_terms_are_rounded_little(agent: Agent, op: str, tmp_path: Path, seed: int) -> None:
    """Terms of both signs take turns; one sign after the other, the error is ten times as large."""
    rng = np.random.default_rng(seed)
    drawn = opposed(rng, op)
    (tmp_path / "m.onnx").write_bytes(model_of(drawn).SerializeToString())
    graph, x = load_onnx(tmp_path / "m.onnx"), np.asarray(rng.standard_normal((ROWS, FEATURES)), np.float32)
    ended = agent.run(compile_graph(graph, Options("cpu"), limits_here(agent.binary, "cpu")), {"x": x}, "--samples", 1)
    found = ended.output(graph.outputs.index("y")).reshape(ROWS, -1)
    size = np.abs(drawn[2]["coefficients"]).sum()
    assert np.abs(found - evaluate(graph, {"x": x}, dtype=np.float64)["y"]).max() < 6e-8 * size


@pytest.mark.parametrize("values", ["values_floats", "values_int64s"])
def test_whole_numbers_are_encoded(values: str, tmp_path: Path) -> None:
    """As an isolation forest looks up the leaf that a row ends in; a key that is not there has the default."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT if values == "values_floats" else onnx.TensorProto.INT64
    numbers_of = {"keys_int64s": [3, 11, 7], values: [4, 9, 6], f"default_{values[7:-1]}": 5}
    if values == "values_floats":
        numbers_of |= {values: [4.5, 9.0, 6.0], "default_float": 0.5}
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=onnx.TensorProto.INT64),
        helper.make_node("LabelEncoder", ["whole"], ["y"], domain=DOMAIN, **numbers_of),
    ]
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (4, 2))]
    graph = helper.make_graph(nodes, "one", given, [helper.make_tensor_value_info("y", kind, None)])
    sets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 3)]
    x = np.asarray([[3, 7], [11, 2], [0, 3], [7, 11]], np.float32)
    case = case_of("labels", helper.make_model(graph, opset_imports=sets, ir_version=9), x)
    found = imported(case, tmp_path / "m.onnx")
    assert found.graphs
    assert not found.wrong


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("OneHotEncoder", {"cats_strings": ["a", "b"]}),
        ("LabelEncoder", {"keys_strings": ["a"], "values_floats": [1.0]}),
    ],
)
def test_text_is_refused(operator: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model_of((operator, ["y"], attributes)).SerializeToString())
    with pytest.raises(ModelError, match="text is not supported: encode it before"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "drawn",
    [
        ("OneHotEncoder", ["y"], {"cats_int64s": [4, (1 << 24) + 1]}),
        ("LabelEncoder", ["y"], {"keys_floats": [4.0], "values_int64s": [-(1 << 25)]}),
        ("LinearClassifier", ["label", "y"], {"coefficients": [1.0] * 2 * FEATURES, "classlabels_ints": [0, 1 << 30]}),
    ],
)
def test_whole_numbers_that_fp32_does_not_hold_are_refused(drawn: Drawn, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model_of(drawn).SerializeToString())
    with pytest.raises(ModelError, match=r"beyond 2\^24"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("keys", [[1.0, math.nan], [2.0, 2.0]])
def test_keys_that_no_comparison_finds_are_refused(keys: list[float], tmp_path: Path) -> None:
    drawn: Drawn = ("LabelEncoder", ["y"], {"keys_floats": keys, "values_floats": [4.0, 5.0]})
    (tmp_path / "m.onnx").write_bytes(model_of(drawn).SerializeToString())
    with pytest.raises(ModelError, match="a key is NaN, or is there twice"):
        load_onnx(tmp_path / "m.onnx")


@pytest.mark.parametrize("harm", ["falsenodeids", "treeids"])
def test_trees_that_never_end_are_refused(harm: str, tmp_path: Path) -> None:
    operator, outputs, attributes = regressor(np.random.default_rng(5), "BRANCH_LEQ", "SUM")
    attributes[f"nodes_{harm}"] = [0] * len(attributes["nodes_nodeids"])
    (tmp_path / "m.onnx").write_bytes(model_of((operator, outputs, attributes)).SerializeToString())
    with pytest.raises(ModelError, match=operator):
        load_onnx(tmp_path / "m.onnx")


def test_what_runtimes_disagree_on_is_refused(tmp_path: Path) -> None:
    drawn = classifier(np.random.default_rng(6), [0, 1], [0, 1], "NONE")
    (tmp_path / "m.onnx").write_bytes(model_of(drawn).SerializeToString())
    with pytest.raises(ModelError, match="runtimes disagree"):
        load_onnx(tmp_path / "m.onnx")


def test_every_operator_is_tried() -> None:
    tried = {draw(np.random.default_rng(0))[0] for draw in DRAWS.values()}
    assert tried | {"ArrayFeatureExtractor", "ZipMap"} == {*CLASSICAL}
