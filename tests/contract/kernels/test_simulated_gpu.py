"""Kernels on a simulated GPU (Oclgrind): no work-item reads or writes beyond a buffer, none races with another.

PoCL runs the work-items of a group in an order that hides both; a GPU need not.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from kernels.catalog.convolution import ALGORITHMS, convolution_of
from kernels.compile import compile_generation, compile_graph
from kernels.frontend.load import load_decoder
from kernels.ir.graph import Graph
from kernels.ir.packed import FORMATS
from kernels.options import Choice, Limits, Options
from kernels.plan.model import Bundle, OpenClSource
from kernels.reference import evaluate
from tests.contract.agent.driver import Agent
from tests.contract.agent.plans import Draft, binary_program, combine, vector
from tests.unit.kernels.back.graphs import TOLERANCE, Builder, inputs_of, relative_error, side_by_side, some
from tests.unit.kernels.back.packed_matrices import KINDS, packed_matrix, stored
from tests.unit.kernels.back.test_movement import addition, every_transposition
from tests.unit.kernels.back.test_operations import CASES
from tests.unit.kernels.back.test_products import SMALL
from tests.unit.kernels.back.test_products import every as every_product
from tests.unit.kernels.front.gguf_models import SAID, write_decoder

from .test_channels import kernels
from .test_ports import first_layers, last_layers
from .test_separable import channels_of

pytestmark = pytest.mark.slow
LIMITS = Limits(local_bytes=32 << 10, max_work_group=1024)
PLATFORM = "liboclgrind-rt-icd.so"
RACING = """
typedef struct { int op, mode, outer, axis, inner, activation; float lo, hi; } Scalars;
__kernel void binary(__global const float* a, __global const float* b, __global float* dst, const Scalars given) {
  dst[get_global_id(0) / 2] = a[get_global_id(0)];
}
"""


class Simulator:
    """The agent on Oclgrind's device."""

    def __init__(self, agent: Agent, library: Path) -> None:
        self._agent, self._log = agent, agent.folder / "oclgrind.log"
        (agent.folder / "vendors").mkdir()
        (agent.folder / "vendors" / "oclgrind.icd").write_text(f"{library}\n")

    def run(self, bundle: Bundle, inputs: dict[str, object], *options: object) -> str:
        """Return what Oclgrind has to say."""
        environment = {
            "OCL_ICD_VENDORS": f"{self._agent.folder / 'vendors'}/",
            "OCLGRIND_DATA_RACES": "1",
            "OCLGRIND_CHECK_API": "1",
            "OCLGRIND_LOG": str(self._log),
        }
        asked = ("--warmup", 0, "--samples", 1, *options)
        ended = self._agent.run(bundle, inputs, *asked, **environment)  # type: ignore[arg-type]
        assert ended.code == 0, ended.events[-1]
        self.outputs = {event.name: ended.output(i) for i, event in enumerate(ended.all("output"))}
        return self._log.read_text() if self._log.exists() else ""


def racing() -> tuple[Bundle, dict[str, object]]:
    """Two work-items write each number."""
    program = binary_program("opencl")
    draft = Draft("opencl", [combine("x", "x", "y")], programs=[program])
    bundle = draft.bundle()
    (name,) = bundle.files
    assert isinstance(program.opencl, OpenClSource) and name == program.opencl.file
    content = RACING.encode()
    plan = bundle.plan.model_copy(update={"files": {name: sha256(content).hexdigest()}})
    return Bundle(plan, {name: content}), {"x": vector(1)}


@pytest.fixture(scope="module")
def platform() -> Path:
    found = shutil.which("oclgrind")
    libraries = sorted(Path(found).resolve().parents[1].glob(f"lib*/**/{PLATFORM}")) if found else []
    if not libraries:
        pytest.skip("oclgrind is not installed on this machine")
    return libraries[0]


@pytest.fixture
def simulator(agent: Agent, platform: Path) -> Simulator:
    return Simulator(agent, platform)


def convolutions() -> tuple[Graph, Options]:
    """One of each algorithm that shares through local memory, with its largest work-group."""
    chosen = (("implicit_gemm", 3), ("im2col", 3), ("winograd", 3), ("winograd_large", 3), ("winograd_large", 7))
    made = Builder()
    x = made.input(1, 5, 5, 6)
    graph = made.outputs(*(made.conv(x, 6, (w, w), (1, 1), (w // 2,) * 4) for _, w in chosen))
    tuned = {}
    for node, (algorithm, _) in zip(graph.nodes, chosen, strict=True):
        tiles = ALGORITHMS[algorithm].tiles(convolution_of(graph, node), Options("opencl"), LIMITS)
        tuned[node.name] = Choice(algorithm, tiles[len(tiles) // 2])
    return graph, Options("opencl", tuned=tuned)


def cases(*names: str) -> Graph:
    made = {}
    for name in names:
        builder = Builder()
        made[name] = builder.outputs(CASES[name](builder))
    return side_by_side(made)


def separable() -> Graph:
    made = Builder()
    x = made.conv(made.input(2, 9, 5, 6), 21, (3, 3), (2, 1), (1, 1, 1, 1), groups=3, bias=False)
    deep = made.conv(x, 21, (3, 3), (2, 1), (1, 1, 1, 1), groups=21)
    gate = made.conv(made.node("global_average_pool", [x], (2, 21, 1, 1)), 21, (1, 1), activation=("sigmoid",))
    gated = made.node("map", [gate, x], made.graph.shapes[x], expression=("mul", "a", "b"))
    order = channels_of(made, x, [20, 0, 19, 3, 7])
    return made.outputs(*(made.conv(each, 10, (1, 1)) for each in (deep, gated, order)))


def moved() -> Graph:
    sums = {"a": addition("add", 2, 5, 3, 9), "m": addition("mul", 3, 7)}
    return side_by_side({"t": every_transposition(2, 3, 17, 18), **sums})


def squeezed() -> Graph:
    """Groups of which each is larger in one of the two layers; the last block has a picture too few."""
    made = Builder()
    sizes = ((1, 70, 9, 21), (9, 22, 6, 40), (1, 12, 40, 12))
    inputs = [made.input(n, c, 1, 1, name=f"x{i}") for i, (n, c, *_) in enumerate(sizes)]
    hidden = [made.conv(x, k, (1, 1), activation=("relu",)) for x, (_, _, k, _) in zip(inputs, sizes, strict=True)]
    return made.outputs(*(made.conv(x, k, (1, 1)) for x, (*_, k) in zip(hidden, sizes, strict=True)))


def packed() -> tuple[Graph, Options]:
    """Weights of two formats, which two rows read, and more rows a copy of; the last spans are not full."""
    made = Builder()
    for rows, kind in zip((2, 9), some(KINDS, 2), strict=True):
        weight = stored(made, kind, packed_matrix(kind, 37, 333, made.rng).T)
        inputs, outputs = made.graph.shapes[weight]
        made.node("dense", [made.input(rows, inputs, name=f"x{rows}"), weight], (rows, outputs))
    return made.outputs(*(node.output for node in made.graph.nodes)), Options("opencl")


SHARED_SUMS = (
    "softmax_rows", "softmax_many_channels", "instance_norm_chunks", "global_average_pool_large", "dense_row_deep",
    "dense_rows_deep", "lrn",
)  # fmt: skip
MERGED = {"separable": 3, "squeeze": 3}
"""Plans of layers that compute those before them, and how many do."""
KERNELS = ("conv_separable", "conv_taking", "conv_squeeze")
DESKTOP = (*MERGED, "first layers", "last layers")
"""Plans that a GPU with memory of its own computes in its own way."""
PLANS: dict[str, Callable[[], tuple[Graph, Options]]] = {
    "convolutions": convolutions,
    "separable": lambda: (separable(), Options("opencl")),
    "squeeze": lambda: (squeezed(), Options("opencl")),
    "first layers": lambda: (first_layers(), Options("opencl", "fp16")),
    "last layers": lambda: (last_layers(), Options("opencl", "fp16")),
    "shared sums": lambda: (cases(*SHARED_SUMS), Options("opencl")),
    "halves": lambda: (cases(*SHARED_SUMS), Options("opencl", "fp16")),
    "ranks": lambda: (cases("affine_rank_3", "affine_rank_5", "softmax_rank_3", "mul_rank_3"), Options("opencl")),
    "packed": packed,
    "transpositions": lambda: (moved(), Options("opencl", transpose="tiled 16x4")),
    **{
        f"product {words}": lambda words=words: (every_product(33, SMALL), Options("opencl", product=words))  # type: ignore[misc]
        for words in (
            "blocked 8x16",
            "tiled 8x4x1x1x4",
            "one_row 2x8x1x2",
            "split_depth 2x8",
            "registers 3x1x4",
            "panels 3x2x4",
        )
    },
}


@pytest.mark.parametrize("name", PLANS)
def test_nothing_races_and_nothing_is_out_of_bounds(simulator: Simulator, name: str) -> None:
    graph, options = PLANS[name]()
    inputs = inputs_of(graph)
    bundle = compile_graph(graph, options, replace(LIMITS, unified_memory=name not in DESKTOP))
    found = kernels(bundle.plan)
    assert sum(found[each] for each in KERNELS) == MERGED.get(name, 0)
    said = simulator.run(bundle, dict(inputs))
    assert said == ""
    for output, wanted in evaluate(graph, inputs).items():
        assert relative_error(simulator.outputs[output].reshape(wanted.shape), wanted) <= TOLERANCE[options.precision]


def test_a_token_races_with_nothing(simulator: Simulator, tmp_path: Path, seed: int) -> None:
    """Attention appends to the cache that its work-groups read: behind a piece, whose rows several work-items have."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["F32", *FORMATS][:6]))
    write_decoder(tmp_path / "m.gguf", str(rng.choice([*SAID])), rng, kind, layers=1)
    limits = replace(LIMITS, unified_memory=bool(rng.integers(2)), compute_units=20)
    bundle = compile_generation(load_decoder(tmp_path / "m.gguf", 40, (9, 1)), Options("opencl"), limits)
    np.zeros(9, "<i8").tofile(tmp_path / "tokens.bin")
    assert [name for name in kernels(bundle.plan) if name.startswith("attend_token") and "_appending" in name]
    assert simulator.run(bundle, {}, "--tokens", tmp_path / "tokens.bin", "--generate", 2) == ""


def test_a_race_would_be_seen(simulator: Simulator) -> None:
    assert "data race" in simulator.run(*racing())
