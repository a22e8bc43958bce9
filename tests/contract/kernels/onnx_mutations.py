"""ONNX's own cases with something changed: an attribute, a shape, an input left out or in another's place, the opset.

python -m tests.contract.kernels.onnx_mutations --cases 6000 [--seed N]

What onnxruntime computes must be what we compute, or be refused. What it refuses and we take is printed, to be judged
by a person: it has rules of its own, too. It runs in a process of its own for each model, as it dies of some.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime

from .onnx_cases import Case, Found, imported, nodes, operators

NEWEST_IR, NEWEST_OPSET = 12, 25
"""The newest that onnxruntime knows; a node that came later is refused by both."""
LIMIT_S = 20.0
LARGEST = 1e5
Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Mutation = Callable[[np.random.Generator, onnx.ModelProto, onnx.NodeProto, Arrays], str]
"""Changes a model, one of its nodes or its inputs, and says what; empty: it found nothing to change."""


_OPEN = ("sorted",)
"""Attributes with values of which ONNX leaves open what follows."""


@dataclass
class Mutated:
    """A case with its change, what we make of it, and whether onnxruntime computes it."""

    found: Found
    what: str
    is_computed: bool


def _attribute(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    if not node.attribute:
        return ""
    chosen, kinds = node.attribute[int(rng.integers(len(node.attribute)))], onnx.AttributeProto
    if chosen.name in _OPEN:
        return ""
    if chosen.type == kinds.INT:
        chosen.i = int(rng.choice([chosen.i + 1, chosen.i - 1, -chosen.i, 0, 1, -1, 2, 7]))
    elif chosen.type == kinds.FLOAT:
        chosen.f = float(rng.choice([0.0, 1.0, -1.0, 0.5, 2.5, 3.0 * chosen.f]))
    elif chosen.type == kinds.STRING:
        chosen.s = rng.choice([b"nearest", b"linear", b"reflect", b"sum", b"max", b"SAME_LOWER", b"reverse", b"CRD"])
    elif chosen.type == kinds.INTS and chosen.ints:
        changed = list(chosen.ints)
        place = int(rng.integers(len(changed)))
        how = rng.choice(["one", "less", "more"])
        changed[place : place + (how != "more")] = [] if how == "less" else [int(rng.integers(-1, 4))]
        del chosen.ints[:]
        chosen.ints.extend(changed)
    else:
        return ""
    return f"{chosen.name} is {onnx.helper.get_attribute_value(chosen)}"


def _left_out(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    if len(node.attribute) and rng.random() < 0.5:
        chosen = int(rng.integers(len(node.attribute)))
        name = node.attribute[chosen].name
        del node.attribute[chosen]
        return f"without {name}"
    if len(node.input) < 2:
        return ""
    place = int(rng.integers(1, len(node.input)))
    node.input[place] = ""
    return f"without input {place}"


def _added(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    opset = model.opset_import[0].version
    if not onnx.defs.has(node.op_type, opset, node.domain):
        return ""
    schema, given = onnx.defs.get_schema(node.op_type, opset, node.domain), {each.name for each in node.attribute}
    given.update(_OPEN)
    lacking = [name for name, of in schema.attributes.items() if name not in given and of.type.name in ("INT", "FLOAT")]
    if not lacking:
        return ""
    name = str(rng.choice(lacking))
    number = int(rng.integers(-1, 3))
    of_floats = schema.attributes[name].type.name == "FLOAT"
    node.attribute.append(onnx.helper.make_attribute(name, float(number) if of_floats else number))
    return f"{name} is {number}"


def _swapped(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    if len(node.input) < 2:
        return ""
    one, other = (int(place) for place in rng.choice(len(node.input), 2, replace=False))
    node.input[one], node.input[other] = node.input[other], node.input[one]
    return f"inputs {one} and {other} have changed places"


def _opset(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    model.opset_import[0].version = max(7, model.opset_import[0].version - int(rng.integers(1, 6)))
    return f"opset {model.opset_import[0].version}"


def _shape(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    port = model.graph.input[int(rng.integers(len(model.graph.input)))]
    given = inputs[port.name]
    shape, how = list(given.shape), rng.choice(["one", "one", "one", "less", "more", "unit"])
    place = int(rng.integers(len(shape))) if shape else 0
    if how == "more":
        shape.insert(place, int(rng.integers(1, 3)))
    elif not shape:
        return ""
    elif how == "less":
        del shape[place]
    else:
        shape[place] = 1 if how == "unit" else max(1, shape[place] + int(rng.integers(-1, 3)))
    if given.dtype.kind not in "fiub" or not given.size or np.prod(shape) > LARGEST:
        return ""
    whole = given.dtype.kind != "f" or bool(np.all(given == np.round(given)))  # a class, an axis
    new = np.resize(given, shape) + (0 if whole else 0.1 * rng.standard_normal(shape))
    inputs[port.name] = np.asarray(new, given.dtype)
    del port.type.tensor_type.shape.dim[:]
    for extent in shape:
        port.type.tensor_type.shape.dim.add().dim_value = extent
    return f"{port.name} has shape {tuple(shape)} in place of {given.shape}"


def _number(rng: np.random.Generator, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Arrays) -> str:
    whole = [name for name, array in inputs.items() if array.dtype.kind in "iu" and array.size]
    if not whole:
        return ""
    name = str(rng.choice(whole))
    changed = inputs[name].copy()
    place = int(rng.integers(changed.size))
    changed.reshape(-1)[place] = int(rng.integers(0 if changed.dtype.kind == "u" else -2, 4))
    inputs[name] = changed
    return f"element {place} of {name} is {changed.reshape(-1)[place]}"


MUTATIONS: tuple[Mutation, ...] = (
    _attribute, _attribute, _attribute, _left_out, _added, _swapped, _opset, _shape, _shape, _number,
)  # fmt: skip


def mutated(rng: np.random.Generator, case: Case, path: Path) -> Mutated | None:
    """None where nothing was changed, an input is empty, or the result is no tensor."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = min(model.ir_version, NEWEST_IR)
    for used in model.opset_import:
        if not used.domain:
            used.version = min(used.version, NEWEST_OPSET)
    inputs = {name: np.asarray(array) for name, array in case.inputs.items()}
    said = []
    for _ in range(int(rng.integers(1, 3))):
        node = model.graph.node[int(rng.integers(len(model.graph.node)))]
        said.append(MUTATIONS[int(rng.integers(len(MUTATIONS)))](rng, model, node, inputs))
    what = ", ".join(filter(None, said))
    if not what or not all(array.size for array in inputs.values()):
        return None
    for port in model.graph.output:
        port.type.tensor_type.ClearField("shape")
    wanted = computed(model, inputs)
    if wanted is not None and not all(isinstance(array, np.ndarray) for array in wanted.values()):
        return None
    changed = Case(case.name, model, inputs, wanted or {})
    return Mutated(imported(changed, path), what, wanted is not None)


def computed(model: onnx.ModelProto, inputs: Arrays) -> Arrays | None:
    """The outputs by onnxruntime, in a process of its own; None where it refuses, dies or takes too long."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_compute, args=(model, inputs, theirs))
    child.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(LIMIT_S) else None
    except EOFError:
        return None
    finally:
        ours.close()
        child.kill()
        child.join()


def _compute(model: onnx.ModelProto, inputs: Arrays, to: Connection) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        found = session.run(None, {port.name: inputs[port.name] for port in session.get_inputs()})
    except Exception:  # whatever it says, it refuses
        to.send(None)
    else:
        to.send(dict(zip((port.name for port in session.get_outputs()), found, strict=True)))


def cases(rng: np.random.Generator, count: int, path: Path) -> Iterator[Mutated]:
    """Yield so many mutations, of the operators whose cases are made quickly."""
    every = nodes(operators())
    while count:
        with np.errstate(all="ignore"):  # the root of a negative number is NaN in both
            found = mutated(rng, every[int(rng.integers(len(every)))], path)
        if found is not None:
            count -= 1
            yield found


def main() -> None:
    """Draw until there are enough, print what is wrong, and what onnxruntime refuses and we take."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = int(np.random.default_rng(given.seed).integers(1 << 32)) if given.seed is None else given.seed
    counts: Counter[str] = Counter()
    with TemporaryDirectory() as folder:
        for one in cases(np.random.default_rng([seed, 90]), given.cases, Path(folder) / "m.onnx"):
            taken, by = bool(one.found.graphs), "computed" if one.is_computed else "refused"
            kind = "wrong" if one.found.wrong else f"{by} by onnxruntime, {'taken' if taken else 'refused'} by us"
            counts[kind] += 1
            if one.found.wrong or (taken and not one.is_computed):
                print(f"{kind}: {one.found.case.name}: {one.what} {one.found.wrong}", flush=True)
    print(f"seed {seed}: {dict(counts)}")


if __name__ == "__main__":
    main()
