"""The JSON Schema of experiment files says of a file what `farm run` says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernels.options.axis import Axis
from orchestrator.model.axes import MATRIX_AXES
from orchestrator.model.device import Api, Precision
from orchestrator.model.experiment import Experiment
from orchestrator.model.experiment.language_model import DEFAULTS
from orchestrator.nightly import Suite
from orchestrator.spec.json_schemas import EXPERIMENT_SCHEMA

ROOT = Path(__file__).parents[3]
FILES = [path for folder in ("experiments", "examples", "farm") for path in sorted((ROOT / folder).rglob("*.y*ml"))]
SCHEMAS = {
    model: jsonschema.Draft202012Validator(schema)
    for model, schema in (
        (Experiment, json.loads(EXPERIMENT_SCHEMA.read_text())),
        (Suite, Suite.model_json_schema()),
    )
}


def is_taken(data: Any, model: type[Experiment] | type[Suite] = Experiment) -> bool:
    try:
        model.model_validate(data)
    except ValidationError:
        return False
    return True


def test_files_that_are_taken_are_right() -> None:
    looked = [
        (path, model)
        for path in FILES
        for model in SCHEMAS
        if is_taken(data := yaml.safe_load(path.read_text()), model) and SCHEMAS[model].validate(data) is None
    ]
    assert {model for _, model in looked} == set(SCHEMAS) and len(looked) >= 15


PARSED = {
    "fuse": ["none", "bias", True, ["bias", "concat"]],
    "on_cpu": ["none", False, "after conv1", "products", ["pooling", "products"]],
}
"""Axes whose words the schema does not know: right ones."""


def value_of(axis: Axis) -> st.SearchStrategy[Any]:
    """Return what a person may write, right or wrong: words and numbers of the axis, and others."""
    if axis.words:
        return st.sampled_from([*axis.words, "other"])
    if axis.unit == "B":
        return st.sampled_from(["2 GB", "16 MiB", 4096])
    if axis.bounds:
        return st.integers(axis.bounds[0] - 1, axis.bounds[0] + 3)
    if axis.parse:
        return st.sampled_from(PARSED[axis.name])
    if axis.type is str:
        return st.just("any" if axis.refuse else "auto")
    return st.booleans() if axis.type is bool else st.integers(0, 9)


def meant(value: Any) -> str:
    """A list of an axis names nothing twice, and `no` is YAML's false."""
    return "none" if value is False else str(value)


KINDS = {
    "backend": st.sampled_from([*map(str, Api), "cuda"]),
    "precision": st.sampled_from([*map(str, Precision), "fp8"]),
    "network": st.sampled_from(["lenet", "alexnet"]),
    **{name: value_of(axis) for name, axis in MATRIX_AXES.items()},
}
AXES = {name: kind | st.lists(kind, max_size=3, unique_by=meant) for name, kind in KINDS.items()}
OF_TEXTS = {name: AXES[name] for name in ("backend", "precision", "threads", *DEFAULTS)}
OF_OTHERS = {name: kind for name, kind in AXES.items() if name not in ("updates", *DEFAULTS)}
"""A schema knows no rules between fields: `updates: host` needs a training, and a text a language model."""
OTHER = {"workload": {"network": "lenet", "choices": "layers.json"}, "sampling": {"frames": 12}}
TEXT = {"workload": {"language_model": "m.gguf"}}


@given(st.one_of(
    st.tuples(st.just(OTHER), st.fixed_dictionaries({}, optional=OF_OTHERS)),
    st.tuples(st.just(TEXT), st.fixed_dictionaries({}, optional=OF_TEXTS)),
))  # fmt: skip
def test_a_matrix_is_right_where_it_is_taken_and_wrong_elsewhere(drawn: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """A single value as well as a list; an empty list and what an axis does not know are neither."""
    work, matrix = drawn
    data = {"name": "x", **work, "matrix": matrix}
    assert SCHEMAS[Experiment].is_valid(data) == is_taken(data)


@pytest.mark.parametrize(
    "more",
    [
        {"matrix": {"backend": "opencl", "fuse": False, "threads": 2, "memory_budget": "2 GB"}},
        {"matrix": {"fuse": ["bias", "concat"]}},
        {
            "workload": [{"network": "lenet"}, {"onnx": "a.onnx"}],
            "matrix": {"engine": "mnn", "backend": "cpu"},
            "engine": {"models": {"mnn": {"a": "a.mnn", "lenet": ["b.mnn"]}}},
        },
        {"workload": {"onnx": "a.onnx", "dataset": {"inputs": "a.npy", "mean": 0.5, "scale": [2, 3]}}},
        {"published": {"study": "a.yaml", "tables": [{"table": "II", "columns": {"time": {}}}]}},
    ],
)
def test_what_is_taken_is_right(more: dict[str, Any]) -> None:
    data = {"name": "x", "workload": {"network": "lenet"}, **more}
    assert is_taken(data) and list(SCHEMAS[Experiment].iter_errors(data)) == []
