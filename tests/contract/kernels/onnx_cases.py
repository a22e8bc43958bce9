"""ONNX's own cases, which nobody here wrote: single operators, and models with data that PyTorch once exported.

python -m tests.contract.kernels.onnx_cases              # what is right, refused, WRONG, by operator (reference)
python -m tests.contract.kernels.onnx_cases cpu opencl vulkan     # through the agent as well: minutes
python -m tests.contract.kernels.onnx_cases --write      # what is refused becomes the list that may only shrink
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from onnx.backend.test.case import base as case_base
from onnx.backend.test.case import node as node_cases
from onnx.backend.test.loader import DATA_DIR

from benchmarks.engine.agent_process import Agent as Probed
from benchmarks.engine.agent_process import limits_of
from benchmarks.engine.ours import find_device
from kernels.compile import compile_graph
from kernels.errors import ModelError
from kernels.frontend.onnx import load_onnx
from kernels.ir.expressions import program_of
from kernels.ir.graph import Graph
from kernels.options import Limits, Options
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import side_by_side

OPSET = 13
"""The opset to which older models are converted."""
REFUSED = Path(__file__).with_name("onnx_cases_refused.txt")
"""Cases of operators of which no variant is taken. A new line is a step back."""
SLOW = ("attention", "averagepool", "lppool", "maxpool")
TOGETHER = 24
"""Cases that the agent runs as one plan."""

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]


@dataclass
class Case:
    """A model with inputs and the outputs that they give."""

    name: str
    model: onnx.ModelProto
    inputs: Arrays
    outputs: Arrays

    @property
    def operator(self) -> str:
        """The operator of a single node; of an expanded function the case's name says it."""
        return str(self.model.graph.node[0].op_type) if len(self.model.graph.node) == 1 else "(several)"

    def load(self, path: Path, activations: tuple[str, ...]) -> Graph:
        """The graph of which these inputs stay inputs and the others are stored."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        stored = [port for port in model.graph.input if port.name in self.inputs and port.name not in activations]
        for port in stored:
            model.graph.input.remove(port)
            model.graph.initializer.append(onnx.numpy_helper.from_array(self.inputs[port.name], port.name))
        path.write_bytes(model.SerializeToString())
        return load_onnx(path)

    def variants(self) -> Iterator[tuple[str, ...]]:
        """The inputs that are activations, by variant: all, those of fp32, the first of these."""
        floats = tuple(name for name, array in self.inputs.items() if array.dtype == np.float32)
        yield from dict.fromkeys((tuple(self.inputs), floats, floats[:1]))

    def given(self, graph: Graph) -> dict[str, Array]:
        arrays = {name: np.asarray(self.inputs[name]) for name in graph.inputs}
        return {name: x if x.dtype.kind in "biu" else x.astype(np.float32) for name, x in arrays.items()}

    def faults(self, got: Arrays) -> str:
        """The first difference from the outputs that ONNX gives; empty: none."""
        for name, wanted in self.outputs.items():
            found = got[name]
            for axis in range(found.ndim):  # as many along it as the input decides
                count = got.get(f"{name}.count{axis or ''}")
                found = found if count is None else found.take(range(count.astype(int).item()), axis)
            if found.shape != wanted.shape:
                return f"{name} has shape {found.shape}; expected {wanted.shape}"
            wanted = wanted.astype(np.float64)
            size = max(1.0, np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted)))
            with np.errstate(invalid="ignore"):
                close = np.isclose(found, wanted, rtol=1e-3, atol=1e-5 * size, equal_nan=True)
            if not np.all(close):
                return f"{name} differs in {np.count_nonzero(~close)} of {wanted.size} elements"
        return ""


@dataclass
class Found:
    """The outcome of a case's import: graphs of the variants that it takes, why it refuses the others."""

    case: Case
    graphs: list[Graph] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    wrong: str = ""


def operators() -> list[str]:
    """Modules of ONNX's tests of its standard operators, without those whose cases take seconds to make."""
    whole = node_cases.__name__ + "."
    names = (module.name.removeprefix(whole) for module in walk_packages(node_cases.__path__, whole))
    return [name for name in names if name not in SLOW and not name.startswith("ai_onnx_ml")]


def nodes(modules: Iterable[str] = (), *, whole: bool = False) -> list[Case]:
    """Tests of single operators that have an input of fp32, or with `whole` any: those of some modules, or all."""
    texts = patch.object(case_base, "process_snippet", lambda *_: ("", ""))  # for pages about ONNX
    with texts, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx's: infinities that its cases are about
        for name in modules or (*operators(), *SLOW):
            import_module(f"{node_cases.__name__}.{name}")
    found = []
    for case in node_cases._NodeTestCases:
        inputs, outputs = case.data_sets[0]
        graph = case.model.graph
        plain = all(isinstance(array, np.ndarray | np.generic) for array in (*inputs, *outputs))
        plain = plain and (whole or any(array.dtype == np.float32 for array in inputs))
        if plain and len(inputs) == len(graph.input):
            given = {port.name: np.asarray(array) for port, array in zip(graph.input, inputs, strict=True)}
            wanted = {port.name: np.asarray(array) for port, array in zip(graph.output, outputs, strict=True)}
            found.append(Case(case.name, case.model, given, wanted))
    return found


def exported(pattern: str = "*") -> Iterator[Case]:
    """Models that PyTorch exported once."""
    for folder in sorted(Path(DATA_DIR).glob(f"pytorch-*/{pattern}")):
        if (folder / "model.onnx").exists():
            model = onnx.load(folder / "model.onnx")
            stored = {tensor.name for tensor in model.graph.initializer}
            ports = [port for port in model.graph.input if port.name not in stored]
            if model.opset_import[0].version < OPSET:
                with contextlib.suppress(
                    RuntimeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError
                ):
                    model = onnx.version_converter.convert_version(model, OPSET)
            sets = ((ports, "input"), (model.graph.output, "output"))
            inputs, outputs = ({p.name: _array(folder, k, i) for i, p in enumerate(some)} for some, k in sets)
            if all(map(_in_single, inputs.values())):  # the data of three are memory that nobody wrote
                yield Case(folder.name, model, inputs, outputs)


def _in_single(array: Array) -> bool:
    return array.dtype != np.float64 or bool(np.all(~np.isfinite(array) | (np.abs(array) <= np.finfo(np.float32).max)))


def _array(folder: Path, kind: str, index: int) -> Array:
    tensor = onnx.TensorProto.FromString((folder / "test_data_set_0" / f"{kind}_{index}.pb").read_bytes())
    return np.asarray(onnx.numpy_helper.to_array(tensor))


def _precision(graph: Graph) -> type[np.floating[Any]]:
    """Return ONNX's own fp32 where something is rounded to a whole number: a half is one there only. Else fp64."""
    maps = [node.attributes["expression"] for node in graph.nodes if node.op == "map"]
    rounds = any(step.function == "round" for each in maps for step in program_of(each).instructions)
    return np.float32 if rounds else np.float64


def imported(case: Case, path: Path, *, single: bool = False) -> Found:
    """Every variant, and whether the reference computes what it should from those that are taken.

    `single`: the first alone, in fp32.
    """
    found = Found(case)
    for activations in list(case.variants())[: 1 if single else None]:
        try:
            graph = case.load(path, activations)
            found.graphs.append(graph)
            found.wrong = found.wrong or case.faults(
                evaluate(graph, case.given(graph), dtype=np.float32 if single else _precision(graph))
            )
        except ModelError as e:
            found.refusals.append(str(e))
        except Exception as e:  # a defect, whatever it is
            found.wrong = found.wrong or f"{type(e).__name__}: {e}"
    return found


@cache
def limits_here(binary: Path, api: str) -> Limits:
    """The limits of the device that the agent takes: a CPU and a GPU behind one interface are given other kernels."""
    return limits_of(find_device(Probed(binary, Path()), api))


def through_agent(some: Sequence[Found], agent: Agent, api: str) -> dict[str, str]:
    """Case -> what is wrong, of those that are; each case by its first variant that is taken, all in one plan."""
    taken = {found.case.name: found.graphs[0] for found in some if found.graphs}
    whole = side_by_side(taken)
    bundle = compile_graph(whole, Options(api), limits_here(agent.binary, api))  # type: ignore[arg-type]
    cases = {found.case.name: found.case for found in some}
    given = {f"{name}.{port}": array for name, g in taken.items() for port, array in cases[name].given(g).items()}
    ended = agent.run(bundle, given, "--warmup", 0, "--samples", 1)
    if ended.code:
        return {name: str(ended.events[-1]) for name in taken}
    outputs = {event.name: ended.output(i) for i, event in enumerate(ended.all("output"))}
    wrong = {}
    for name, graph in taken.items():
        got = {port: outputs[f"{name}.{port}"].reshape(graph.shapes[port]) for port in graph.outputs}
        if said := cases[name].faults(got):
            wrong[name] = said
    return wrong


def main(words: Sequence[str]) -> None:
    every = nodes()
    with TemporaryDirectory() as folder:
        found = [imported(case, Path(folder) / "m.onnx") for case in every]
        counts: dict[str, Counter[str]] = {}
        for one in found:
            said = "WRONG" if one.wrong else "right" if one.graphs else "refused"
            counts.setdefault(one.case.operator, Counter())[said] += 1
            if one.wrong:
                print(f"WRONG {one.case.name}: {one.wrong}")
        for operator, count in sorted(counts.items()):
            print(f"{operator:28}", "  ".join(f"{said} {count[said]:4}" for said in ("right", "refused", "WRONG")))
        total = sum(counts.values(), Counter())
        print(f"{'all':28}", "  ".join(f"{said} {total[said]:4}" for said in ("right", "refused", "WRONG")))
        for api in [word for word in words if not word.startswith("-")]:
            _run_all([one for one in found if one.graphs], api)
    if "--write" in words:
        REFUSED.write_text("".join(f"{one.case.name}\n" for one in found if not one.graphs))
    if "--why" in words:
        why = Counter(f"{one.case.operator}: {one.refusals[-1].split(': ', 1)[-1]}" for one in found if not one.graphs)
        print("\n".join(f"{count:4} {said[:200]}" for said, count in why.most_common(150)))


def _run_all(found: Sequence[Found], api: str) -> None:
    wrong: dict[str, str] = {}
    for start in range(0, len(found), TOGETHER):
        with TemporaryDirectory() as folder:
            wrong |= agent_says(found[start : start + TOGETHER], Path(folder), api)
    print(f"{api}: {len(found) - len(wrong)} right, {len(wrong)} WRONG")
    for name, why in wrong.items():
        print(f"  WRONG on {api}: {name}: {why[:300]}")


def agent_says(some: Sequence[Found], folder: Path, api: str) -> dict[str, str]:
    """The faults as `through_agent` tells them; where one case stops all, or takes all the time, each by itself."""
    wrong = _in_time(some, folder, api)
    if len(wrong) < len(some) or len(some) == 1:
        return wrong
    return {name: why for one in some for name, why in _in_time([one], folder, api).items()}


def _in_time(some: Sequence[Found], folder: Path, api: str) -> dict[str, str]:
    from device_agent.build import binary

    try:
        return through_agent(some, Agent(binary(), folder), api)
    except subprocess.TimeoutExpired as e:
        return dict.fromkeys((found.case.name for found in some), f"no answer in {e.timeout} s")


if __name__ == "__main__":
    main(sys.argv[1:])
