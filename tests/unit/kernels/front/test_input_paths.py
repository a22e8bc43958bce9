"""Every way on which an input reaches a graph: files, sizes that a model leaves open, sets of examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.parser import parse_model

from farm.api.model_files import write_inputs
from kernels.compile import compile_graph
from kernels.errors import CompileError, InputError, ModelError, OptionError
from kernels.frontend.examples import Examples, given_by
from kernels.frontend.input_file import Given, read_arrays
from kernels.frontend.load import as_inputs, load_inputs, load_workload
from kernels.frontend.onnx import load_onnx
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate

from .onnx_models import run_onnxruntime

Array = np.ndarray[Any, Any]
Extents = tuple[int | str | None, ...]
FLOATS = (np.float16, np.float32, np.float64)
WHOLE = (np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16, np.bool_)


def model_of(path: Path, ports: dict[str, tuple[Any, Extents]]) -> Path:
    """A model that gives each input back in fp32, times 2."""
    nodes, inputs, outputs = [], [], []
    for name, (kind, shape) in ports.items():
        inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape))
        outputs.append(helper.make_tensor_value_info(f"{name}.y", TensorProto.FLOAT, None))
        nodes.append(helper.make_node("Cast", [name], [f"{name}.c"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Add", [f"{name}.c", f"{name}.c"], [f"{name}.y"]))
    graph = helper.make_graph(nodes, "m", inputs, outputs)
    opset = helper.make_opsetid("", 17)
    path.write_bytes(helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString())
    return path


def drawn(rng: np.random.Generator, kind: Any, shape: tuple[int, ...]) -> Array:
    if kind is np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    numbers = rng.standard_normal(shape) if kind in FLOATS else rng.integers(0, 100, shape)
    return np.asarray(numbers).astype(kind)


def shape_of(rng: np.random.Generator) -> tuple[int, ...]:
    """Return a shape of rank 0 to 5, in one of ten cases without an element."""
    chosen = rng.choice([0, 1, 2, 3, 4], rng.integers(6), p=[0.04, 0.36, 0.2, 0.2, 0.2])
    return tuple(map(int, chosen))


def opened(rng: np.random.Generator, shape: tuple[int, ...], sizes: dict[str, int]) -> Extents:
    """The shape with some of its sizes left open, by names that may occur again, or without one."""
    found: list[int | str | None] = []
    for extent in shape:
        way = rng.integers(3)
        name = next((each for each, size in sizes.items() if size == extent), f"n{len(sizes)}")
        if way == 1:
            sizes[name] = extent
        found.append((extent, name, None)[way] if extent else name)
        if not extent:
            sizes[name] = extent
    return tuple(found)


@pytest.mark.parametrize("draw", range(12))
def test_an_input_of_any_shape_and_type_arrives_on_every_way(tmp_path: Path, seed: int, draw: int) -> None:
    rng = np.random.default_rng([seed, draw])
    sizes: dict[str, int] = {}
    ports, arrays = {}, {}
    for number in range(rng.integers(1, 4)):
        kind = (FLOATS + WHOLE)[rng.integers(10)]
        arrays[f"x{number}"] = drawn(rng, kind, shape_of(rng))
        ports[f"x{number}"] = kind, opened(rng, arrays[f"x{number}"].shape, sizes)
    path = model_of(tmp_path / "m.onnx", ports)
    files = [tmp_path / "x.npz", tmp_path / "api.npz"]
    np.savez(files[0], **arrays)
    write_inputs(list(arrays.values()), path, None, files[1])
    if len(arrays) == 1:
        files.append(tmp_path / "x.npy")
        np.save(files[2], arrays["x0"])
    for file in files:
        given = read_arrays(file)
        if any(not array.size for array in arrays.values()):
            with pytest.raises(InputError, match="it holds no number"):
                load_onnx(path, given=Given.of(given, file))
            continue
        graph = load_onnx(path, given=Given.of(given, file))
        inputs = as_inputs(graph, given, file)
        bundle = compile_graph(graph, Options("opencl"), Limits())
        for found in (evaluate(graph, inputs), run_opencl(bundle, inputs).outputs):
            for name, array in arrays.items():
                assert found[f"{name}.y"].shape == array.shape
                np.testing.assert_array_equal(found[f"{name}.y"], 2 * array.astype(np.float32))


@pytest.mark.parametrize("draw", range(10))
def test_an_input_whose_number_is_said_decides_when_the_model_is_read(tmp_path: Path, seed: int, draw: int) -> None:
    """The branch that it drops need not fit; the answer is onnxruntime's, which gets the number as an input."""
    rng = np.random.default_rng([seed, draw])
    kind, rank, fits = (FLOATS + WHOLE)[draw], int(rng.integers(3)), int(rng.integers(2))
    value = int(rng.integers(2 if kind is np.bool_ else 100))
    one, other = (
        f"width = Constant <value_ints = [2, 1, {width}]> () w = ConstantOfShape <value = float[1] {{{width}}}> "
        f"(width) {name} = Conv(x, w)"
        for width, name in ((3, "a"), (99, "b"))[:: 2 * fits - 1]
    )
    model = parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        m (float[1, 1, length] x, float n) => (float[1, 2, m] y) {{
            whole = Cast <to = 7> (n) one = ReduceSum <keepdims = 0> (whole)
            wanted = Constant <value_int = {value + 1 - fits}> () is = Equal(one, wanted)
            y = If(is) <then_branch = t () => (float[1, 2, m] {"ba"[fits]}) {{{one}}},
                        else_branch = e () => (float[1, 2, m] {"ab"[fits]}) {{{other}}}> }}""")
    kinds = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model.graph.input[1].CopyFrom(helper.make_tensor_value_info("n", kinds, ("size", 1)[:rank]))
    path, x = tmp_path / "m.onnx", rng.standard_normal((1, 1, 20)).astype(np.float32)
    path.write_bytes(model.SerializeToString())
    given = Given({"": x.shape}, "x.npy")
    theirs = run_onnxruntime(path, {"x": x, "n": np.full((1, 1)[:rank], value, kind)})
    ours = evaluate(load_onnx(path, sizes={"n": value}, given=given), {"x": x})
    np.testing.assert_allclose(ours["y"], theirs["y"], rtol=1e-5, atol=1e-6)
    for unfit in ((1, 2), *(() if kind in FLOATS else (0.5, 1 << 70)), *((2,) if kind is np.bool_ else ())):
        with pytest.raises(OptionError, match=r"'n' is .*: give a number that it holds"):
            load_onnx(path, sizes={"n": unfit}, given=given)
    with pytest.raises(ModelError, match=r"does not fit .*both branches run.*--constant NAME=N"):
        load_onnx(path, sizes={"length": 20})


@pytest.mark.parametrize("kind", WHOLE[:2])
def test_a_number_alone_that_cannot_be_taken_is_told(tmp_path: Path, kind: Any) -> None:
    graph = load_onnx(model_of(tmp_path / "m.onnx", {"t": (kind, ())}))
    for value, told in ((2.5, "it takes whole numbers"), (1 << 63, "it takes int"), (-3e38, "it takes int")):
        np.save(tmp_path / "t.npy", np.asarray(value))
        with pytest.raises(InputError, match=f"input 't' holds .*{told}"):
            load_inputs(graph, tmp_path / "t.npy")


@pytest.mark.parametrize("shape", [(), (2,), (2, 1), (2, 3, 4)])
def test_examples_of_any_rank(tmp_path: Path, seed: int, shape: tuple[int, ...]) -> None:
    """A set has the sizes that the model leaves open; of a model that takes one number an example is one."""
    raw = np.random.default_rng(seed).standard_normal((6, *shape[1:])).astype(np.float32)
    np.save(tmp_path / "set.npy", raw)
    path = model_of(tmp_path / "m.onnx", {"x": (np.float32, ("n", *[None] * (len(shape) - 1)) if shape else ())})
    graph = load_onnx(path, batch=2 if shape else None, given=given_by(tmp_path / "set.npy"))
    found = Examples(graph, tmp_path / "set.npy").inferences(range(2, 6))["x"]
    np.testing.assert_array_equal(found, raw[2:6].reshape(-1, *shape))


class TestOpenSizes:
    """`x` and its state: the batch is in front of the one, and behind the layers of the other."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        ports = {"x": (np.float32, ("n", "steps", 8)), "state": (np.float32, (2, "n", None))}
        return model_of(tmp_path / "m.onnx", ports)

    @staticmethod
    def shapes(graph: Graph) -> list[tuple[int, ...]]:
        return [graph.shapes[name] for name in graph.inputs]

    def test_they_are_asked_by_name_and_the_batch_apart(self, path: Path) -> None:
        asked = {"steps": 5, "state.2": 7}
        assert self.shapes(load_onnx(path, sizes=asked)) == [(1, 5, 8), (2, 1, 7)]
        assert self.shapes(load_onnx(path, sizes=asked, batch=4)) == [(4, 5, 8), (2, 4, 7)]
        assert self.shapes(load_onnx(path, sizes=asked | {"n": 3})) == [(3, 5, 8), (2, 3, 7)]
        given = Given({"x": (6, 5, 8)}, "x.npz")
        assert self.shapes(load_onnx(path, sizes={"state.2": 7}, given=given)) == [(6, 5, 8), (2, 6, 7)]

    @pytest.mark.parametrize(
        ("asked", "given", "told"),
        [
            ({}, {}, r"2 obstacles .*(.|\n)*'x' is open in dimension 1 \('steps'\): say the size \(--size steps=N"),
            ({"step": 5}, {}, "no open size and no input 'step', did you mean 'steps'.*: n, steps, state.2"),
            ({"steps": 0}, {}, "steps=0: give a whole number from 1 on"),
            ({}, {"x": (3, 5, 8), "state": (2, 4, 7)}, r"'n' is 3 and 4, .*'x' is \(3, 5, 8\).*'state' is \(2, 4, 7\)"),
            ({"steps": 6}, {"x": (3, 5, 8)}, r"'steps' is 6 and 5, .*size steps=6 was asked; .*'x' is \(3, 5, 8\)"),
            ({}, {"x": (3, 5, 9)}, r"x.npz: input 'x' is \(3, 5, 9\); the model takes \(n, steps, 8\)"),
            ({}, {"x": (3, 8)}, r"'x' is \(3, 8\); the model takes \(n, steps, 8\)"),
            ({}, {"x": (3, 0, 8)}, r"'x' is \(3, 0, 8\): it holds no number"),
        ],
    )
    def test_what_does_not_fit_is_told(self, path: Path, asked: dict[str, int], given: Any, told: str) -> None:
        with pytest.raises(CompileError, match=told):
            load_onnx(path, sizes=asked, given=Given(given, "x.npz"))

    def test_a_batch_beside_another_is_told(self, path: Path) -> None:
        given = Given({"x": (3, 5, 8), "state": (2, 3, 7)}, "x.npz")
        with pytest.raises(ModelError, match=r"batch of 4 was asked.*'x' has 3 \(x.npz: input 'x' is \(3, 5, 8\)\)"):
            load_onnx(path, given=given, batch=4)


@pytest.mark.parametrize(
    ("first", "asked", "got"),
    [("N", None, 1), ("N", 5, 5), (None, 5, 5), (2, None, 2), (2, 2, 2), (2, 5, 0), (2, 1, 0), (1, 4, 0)],
)
def test_a_batch_is_of_open_sizes_only(tmp_path: Path, first: Any, asked: int | None, got: int) -> None:
    """A size that the file fixes may be no batch: states of layers, windows, tables."""
    path = model_of(tmp_path / "m.onnx", {"x": (np.float32, (first, 4))})
    if got:
        assert load_onnx(path, batch=asked).shapes["x.y"] == (got, 4)
        return
    with pytest.raises(ModelError, match=rf"batch of {asked} was asked, .*'x' has {first} \(the file fixes it\)"):
        load_workload(network=None, onnx=path, seed=1, batch=asked)


def test_states_beside_a_batch_stay_as_the_file_fixes_them(tmp_path: Path) -> None:
    path = model_of(tmp_path / "m.onnx", {"x": (np.float32, ("n", 3)), "h": (np.float32, (1, 1, 4))})
    graph = load_onnx(path, batch=4)
    assert [graph.shapes[name] for name in graph.inputs] == [(4, 3), (1, 1, 4)]


def test_networks_refuse_sizes_as_files_do(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=re.escape("network lenet has no parameter 'n'")):
        load_workload(network="lenet", onnx=None, seed=1, sizes={"n": 3})
    path = model_of(tmp_path / "m.onnx", {"x": (np.float32, (2, 3))})
    with pytest.raises(OptionError, match="no open size and no input 'n'; the open sizes of its inputs: none"):
        load_workload(network=None, onnx=path, seed=1, sizes={"n": 3})
