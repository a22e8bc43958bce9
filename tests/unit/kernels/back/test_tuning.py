"""Candidates, trial plans, the search of a network's convolutions, and the database, on a device that is simulated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from kernels.catalog.convolution import CONVOLUTIONS as CONV
from kernels.catalog.convolution import Convolution
from kernels.catalog.convolution.group_tile import StackProduct, choose_group_tile
from kernels.catalog.product import PRODUCTS, Product
from kernels.catalog.transposition import TRANSPOSITIONS, transpose_of
from kernels.catalog.work_group import in_groups
from kernels.compile import compile_graph
from kernels.errors import CompileError, InputError, OptionError
from kernels.frontend.load import load_workload
from kernels.options import Backend, Choice, Limits, Options
from kernels.plan.model import Dispatch
from kernels.plan.opencl_interpreter import run_opencl
from kernels.reference import evaluate
from kernels.tuning import (
    Database,
    Exhaustive,
    Found,
    Progress,
    Ran,
    RunTrial,
    Trial,
    TrialFailed,
    applicable,
    candidates,
    default_choice,
    distinct,
    read,
    trial,
    tune,
)
from kernels.tuning.candidates import BATCH, batches
from kernels.tuning.layers import Layer, layer_of

from .graphs import Builder, relative_error

pytestmark = pytest.mark.slow

LIMITS = {
    "phone": Limits(max_work_group=256, local_bytes=32 << 10, compute_units=4),
    "desktop": Limits(max_work_group=1024, local_bytes=48 << 10, unified_memory=False, compute_units=64),
    "pocl": Limits(max_work_group=4096, local_bytes=2 << 20, cpu_device=True),
}
SHAPES: dict[str, Layer] = {
    "3x3": Layer(CONV, Convolution(1, 32, 15, 14, 48, 15, 14, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1)),
    "5x5": Layer(CONV, Convolution(1, 20, 12, 12, 50, 8, 8, (5, 5), (1, 1), (0, 0, 0, 0), (1, 1), 1)),
    "1x1": Layer(CONV, Convolution(1, 64, 7, 7, 130, 7, 7, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1)),
    "strided": Layer(CONV, Convolution(2, 3, 31, 31, 20, 16, 16, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1)),
    "depthwise": Layer(CONV, Convolution(1, 24, 14, 14, 24, 14, 14, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 24)),
    "grouped": Layer(CONV, Convolution(1, 32, 13, 13, 64, 13, 13, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2)),
    "mirrored": Layer(CONV, Convolution(1, 8, 9, 9, 8, 9, 9, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, mirrored=True)),
    "product": Layer(PRODUCTS, Product(1, 64, 96, 120)),
    "product_row": Layer(PRODUCTS, Product(1, 1, 384, 100)),
    "product_batch": Layer(PRODUCTS, Product(6, 31, 17, 50)),
    "product_shared": Layer(PRODUCTS, Product(2, 5, 17, 50, right_is_shared=True)),
    "dense": Layer(PRODUCTS, Product(1, 5, 70, 50, right_is_constant=True)),
    "dense_row": Layer(PRODUCTS, Product(1, 1, 384, 100, right_is_constant=True)),
    "transpose": Layer(TRANSPOSITIONS, transpose_of((64, 48), (1, 0))),
    "transpose_short_axes": Layer(TRANSPOSITIONS, transpose_of((1, 40, 1, 33), (0, 3, 2, 1))),
    "transpose_images": Layer(TRANSPOSITIONS, transpose_of((2, 24, 5, 34), (0, 2, 3, 1))),
}
OPENCL = Options("opencl")
CONVOLUTIONS = Options("opencl", product="blocked")
"""Products are not tuned where their algorithm is asked for."""


@pytest.mark.parametrize("device", LIMITS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_candidate_compiles_and_the_compilers_own_comes_first(device: str, shape: str) -> None:
    conv, limits = SHAPES[shape], LIMITS[device]
    tried = candidates(conv, OPENCL, limits)
    assert len(tried) == len(set(tried)) > 3 and tried[0] == default_choice(conv, OPENCL, limits)
    for choice in tried:
        plan = trial(conv, [choice], OPENCL, limits).bundle.plan
        assert plan.options["algorithm:0"] == choice.words


def test_trials_are_of_the_layer_itself() -> None:
    for shape in SHAPES.values():
        graph = trial(shape, [default_choice(shape, OPENCL, LIMITS["phone"])], OPENCL, LIMITS["phone"]).graph
        layer = layer_of(graph, graph.nodes[0], OPENCL)
        assert layer is not None and (layer.family, layer.key) == (shape.family, shape.key)


@pytest.mark.parametrize(("shape", "ends"), [("strided", {"pack", "unpack"}), ("dense_row", {"narrow", "widen"})])
def test_a_layer_is_tried_as_within_a_network(shape: str, ends: set[str]) -> None:
    """There it reads stacks and writes halves."""
    options, limits = Options("opencl", "fp16"), LIMITS["desktop"]
    plan = trial(SHAPES[shape], [default_choice(SHAPES[shape], options, limits)], options, limits).bundle.plan
    assert {step.program.split("_")[0] for step in plan.steps if step.layer != "0"} == ends


@pytest.mark.parametrize("shape", ["3x3", "1x1", "depthwise", "grouped"])
def test_work_groups_are_searched_where_a_kernel_works_in_any(shape: str) -> None:
    large = Layer(CONV, Convolution(**{**vars(SHAPES[shape].sizes), "h": 40, "w": 40, "oh": 40, "ow": 40}))
    limits = Limits(max_work_group=128, local_bytes=32 << 10)
    grouped = [choice for choice in candidates(large, OPENCL, limits) if "@" in choice.tile]
    assert grouped and {choice.tile.partition("@")[2] for choice in grouped} == {"32", "128"}
    for choice in grouped:
        plan = trial(large, [choice], OPENCL, limits).bundle.plan
        (step,) = (each for each in plan.steps if isinstance(each, Dispatch) and each.layer == "0")
        program = next(each for each in plan.programs if each.id == step.program)
        assert program.work_group == (int(choice.tile.partition("@")[2]), 1, 1)
    assert not [choice for choice in candidates(large, OPENCL, LIMITS["pocl"]) if "@" in choice.tile]


def test_work_groups_that_would_be_half_empty_are_not_tried() -> None:
    assert in_groups("4", LIMITS["phone"], work_items=17) == ["4@32"]
    assert in_groups("4", LIMITS["phone"], work_items=129) == ["4@32", "4@128", "4@256"]
    assert in_groups("4", Limits(max_work_item_sizes=(64,)), work_items=999) == ["4@32"]


@pytest.mark.parametrize("words", ["4x1x4@", "4x1x4@many", "4x1x4@0"])
def test_a_work_group_that_cannot_be_read_is_refused(words: str) -> None:
    with pytest.raises(OptionError, match="write the work-items of a work-group behind @"):
        trial(SHAPES["3x3"], [Choice("direct", words)], OPENCL, LIMITS["phone"])


def test_batches_hold_everything_once_and_fit() -> None:
    conv, limits = SHAPES["3x3"], Limits(memory_budget_bytes=4 << 20)
    tried = candidates(conv, OPENCL, limits)
    parts = list(batches(conv, tried, limits))
    assert [choice for part in parts for choice in part] == tried
    for part in parts:
        assert len(part) == 1 or sum(conv.family.footprint_bytes(conv.sizes, each) for each in part) <= 2 << 20
    assert max(map(len, parts)) <= BATCH < len(tried)


def test_packed_weights_count_in_a_trials_memory() -> None:
    layer = Product(1, 1, 512, 512, right_is_constant=True)
    packed, rows = (
        PRODUCTS.footprint_bytes(layer, Choice.of(words)) for words in ("panels 1x1x16", "registers 1x1x16")
    )
    assert packed - rows == 4 * 512 * 512


def test_only_what_this_compiler_would_try_is_applied() -> None:
    graph, limits = load_workload(network="lenet", onnx=None, seed=1), LIMITS["pocl"]
    first, second, third, fourth = distinct(graph, OPENCL)
    good, product = Choice("direct", "4x2x16"), Choice("split_depth", "8x32")
    known = {first: good, second: Choice("direct", "7x7x7"), "conv of another network": good}
    known |= {third: product, fourth: Choice("registers", "7x7x7")}
    assert applicable(graph, OPENCL, limits, known) == {first: good, third: product}
    assert applicable(graph, Options("opencl", algorithm="im2col"), limits, known) == {third: product}
    assert applicable(graph, CONVOLUTIONS, limits, known) == {first: good}
    assert applicable(graph, Options("cpu"), limits, known) == {}  # `direct` has no tile there


def test_what_is_asked_for_is_not_tuned() -> None:
    build = Builder()
    x = build.input(2, 12, 5, 6)
    turned = build.node("transpose", [x], (2, 5, 6, 12), perm=(0, 2, 3, 1))
    stays = build.node("transpose", [x], (12, 2, 5, 6), perm=(1, 0, 2, 3))  # its last axis stays: one way only
    total = build.node("add", [x, build.constant(1, 12, 1, 1)], (2, 12, 5, 6))
    graph = build.outputs(turned, stays, total)
    (transposition,) = distinct(graph, OPENCL)
    assert transposition.startswith("transpose 2x5x6x12")
    assert not distinct(graph, Options("opencl", transpose="naive"))
    known = {transposition: Choice("tiled", "16x4")}
    older = {"addition n2 v90 by channel": Choice("vectors", "4")}  # sums had tiles once
    tuned = applicable(graph, OPENCL, LIMITS["phone"], known | older)
    assert tuned == known
    chosen = compile_graph(graph, Options("opencl", tuned=tuned), LIMITS["phone"]).plan.options
    assert {"tiled 16x4", "naive"} <= set(chosen.values())


@pytest.mark.parametrize("shape", ["transpose_short_axes", "transpose_images"])
def test_trials_compute_what_the_layer_does(shape: str) -> None:
    layer, limits = SHAPES[shape], LIMITS["pocl"]
    for choice in candidates(layer, OPENCL, limits):
        plan = trial(layer, [choice], OPENCL, limits)
        ((name, wanted),) = evaluate(plan.graph, plan.inputs).items()
        assert relative_error(run_opencl(plan.bundle, plan.inputs).outputs[name], wanted) <= 1e-6, choice


def simulated(
    ms: Callable[[str], float], *, broken: Collection[str] = (), wrong: Collection[str] = ()
) -> tuple[RunTrial, list[list[str]]]:
    """A device whose times are known; and the choices of each plan that it was given."""
    given: list[list[str]] = []

    def run(plan: Trial, passes: int) -> Ran:
        words = [str(plan.bundle.plan.options[f"algorithm:{node.name}"]) for node in plan.graph.nodes]
        given.append(words)
        if set(words) & set(broken):
            raise TrialFailed("the driver crashed")
        outputs = {name: array + (words[-1] in wrong) for name, array in evaluate(plan.graph, plan.inputs).items()}
        return Ran({str(index): [ms(each)] * passes for index, each in enumerate(words)}, outputs)

    return run, given


def search(run: RunTrial, database: Database, **more: object) -> list[Found]:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    return tune(
        graph, CONVOLUTIONS, LIMITS["phone"], run, device="d", database=database, strategy=lambda _: Exhaustive(1),
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def test_matrix_products_are_searched_like_convolutions() -> None:
    run, _ = simulated(lambda words: 0.5 if words == "registers 1x1x8" else 1.0)
    graph = load_workload(network="autoencoder_784", onnx=None, seed=1)
    database = Database()
    found = tune(
        graph, OPENCL, LIMITS["phone"], run, device="d", database=database, strategy=lambda _: Exhaustive(1)
    )  # fmt: skip
    assert [each.conv for each in found] == list(distinct(graph, OPENCL)) and len(found) == 3
    assert {each.choice.words for each in found} == {"registers 1x1x8"}
    known = database.tuned("d", "fp32", proven=False)
    tuned = applicable(graph, OPENCL, LIMITS["phone"], known)
    plan = compile_graph(graph, Options("opencl", tuned=tuned), LIMITS["phone"]).plan
    assert [words for name, words in plan.options.items() if name.startswith("algorithm:")] == ["registers 1x1x8"] * 3


def test_what_crashes_or_computes_wrongly_is_never_chosen() -> None:
    times = {"direct 1x1x4": 0.1, "direct 2x1x4": 0.2, "direct 4x1x4": 0.3}
    run, given = simulated(lambda words: times.get(words, 1.0), broken=["direct 1x1x4"], wrong=["direct 2x1x4"])
    seen: list[Progress] = []
    found = search(run, Database(), on_progress=seen.append)
    assert [each.choice.words for each in found] == ["direct 4x1x4"] * 2
    assert all(each.failed == 2 and each.default_ms == 1.0 and each.gain == pytest.approx(1 / 0.3) for each in found)
    assert ["direct 1x1x4"] in given  # split until it was alone
    assert (seen[-1].done, seen[-1].total, seen[-1].found) == (2, 2, found[-1])


def test_the_default_stays_where_nothing_is_clearly_faster() -> None:
    run, _ = simulated(lambda words: 1.0 if words == "direct" else 0.99)
    assert all(each.is_default for each in search(run, Database()))


def test_a_device_that_runs_nothing_is_asked_once() -> None:
    run, given = simulated(lambda _: 1.0, broken=["direct"])
    with pytest.raises(TrialFailed, match="the compiler's own choice, direct, does not run: the driver crashed"):
        search(run, Database())
    assert given == [["direct"]]


def test_other_errors_end_the_search() -> None:
    def run(plan: Trial, passes: int) -> Ran:
        raise ConnectionError("the cable is out")

    with pytest.raises(ConnectionError):
        search(run, Database())


def test_an_interrupted_search_goes_on_where_it_was(tmp_path: Path) -> None:
    run, given = simulated(lambda words: len(words))
    path = tmp_path / "tuning.json"

    def interrupted(step: Progress) -> None:
        if step.done == 1 and step.found is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(run, Database(path), on_progress=interrupted)
    assert len(Database(path)) == 1
    assert len(search(run, Database(path))) == 1
    given.clear()
    assert search(run, Database(path)) == [] and given == []
    assert len(search(run, Database(path), again=True)) == 2 and given


def test_what_cannot_be_tuned_is_refused() -> None:
    run, _ = simulated(lambda _: 1.0)
    graph = load_workload(network="autoencoder_784", onnx=None, seed=1)
    for options, said in (
        (Options("cpu"), "no convolution"), (CONVOLUTIONS, "no convolution"),
        (Options("opencl", algorithm="direct"), "leave algorithm out"),
        (Options("opencl", granularity=4, pixels=1), "leave granularity and pixels out"),
    ):  # fmt: skip
        with pytest.raises(CompileError, match=said):
            tune(graph, options, LIMITS["phone"], run, device="d", database=Database(), strategy=lambda _: Exhaustive())


def entry(conv: str, at: float = 1.0, *, device: str = "d", tile: str = "t", kept: bool | None = True) -> Found:
    return Found(
        device=device, precision="fp32", conv=conv, algorithm="direct", tile=tile, ms=1.0, default="direct",
        default_ms=2.0, tried=3, kept=kept, at=at,
    )  # fmt: skip


def test_only_proven_choices_that_are_not_the_compilers_own_are_used() -> None:
    database = Database()
    for each in (
        entry("a"),
        entry("b", kept=None),
        entry("c", kept=False),
        entry("d", tile=""),
        entry("e", device="x"),
    ):
        database.add(each)
    assert set(database.tuned("d", "fp32")) == {"a"}
    assert set(database.tuned("d", "fp32", proven=False)) == {"a", "b"}
    assert database.tuned("d", "fp16") == {}
    database.mark("d", "fp32", ["a"], kept=False)
    assert database.tuned("d", "fp32") == {}


def test_merge_takes_what_is_new_or_newer() -> None:
    database = Database()
    assert database.merge([entry("a", 2.0), entry("b", 2.0)]) == 2
    assert database.merge([entry("a", 1.0, tile="old"), entry("b", 3.0, tile="new"), entry("c")]) == 2
    assert [(each.conv, each.tile) for each in database] == [("a", "t"), ("b", "new"), ("c", "t")]


def test_a_damaged_file_is_told_with_the_place(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    database = Database(path)
    database.add(entry("a"))
    database.add(entry("b"))
    database.save()
    assert list(Database(path)) == list(database) == read(path)
    path.write_text(path.read_text().replace('"ms": 1.0', '"ms": -1.0'))
    with pytest.raises(InputError, match=r"tuning.json: entry 0, ms: .*greater than 0"):
        Database(path)
    path.write_text(path.read_text()[:100])
    with pytest.raises(InputError, match=r"tuning.json: .*JSON"):
        Database(path)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "none.json")


def test_who_saves_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"

    def save(number: int) -> None:
        database = Database(path)
        for index in range(5):
            database.add(entry(f"{number}.{index}"))
            database.save()

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {each.conv for each in Database(path)} == {f"{n}.{i}" for n in range(4) for i in range(5)}
    assert {each.name for each in tmp_path.iterdir()} == {"tuning.json", "tuning.json.lock"}


def test_a_layer_with_few_outputs_gives_every_unit_of_a_desktop_gpu_work() -> None:
    """256 channels to 3 on 180 x 248 pixels: tiles of 512 pixels would leave most of 132 units idle."""
    limits = Limits(max_work_group=1024, local_bytes=48 << 10, unified_memory=False, compute_units=132)
    tile = choose_group_tile(Options("opencl"), limits, StackProduct(180 * 248, stacks=1, depth=576, matrices=1))
    groups = -(-180 * 248 // tile.tile_pixels)
    assert groups * tile.work_group >= 2 * 256 * limits.compute_units


@pytest.mark.parametrize("api", ["opencl", "vulkan"])
def test_a_desktop_gpu_reads_the_source_once_for_several_vectors_of_channels(api: Backend) -> None:
    """Groups of 24 channels, of RegNetX: one vector at a time has no waste, and takes 2.4 times as long."""
    limits = Limits(max_work_group=1024, local_bytes=48 << 10, unified_memory=False, compute_units=132)
    for pixels, groups in ((100352, 3), (25088, 7), (6272, 17)):
        tile = choose_group_tile(Options(api), limits, StackProduct(pixels, stacks=6, depth=54, matrices=groups))
        assert tile.tile_vectors > 1
