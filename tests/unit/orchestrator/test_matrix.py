"""The matrix is exact: every cell, device and block exactly once, as a job or as an exclusion."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.options import gpu_alone
from orchestrator.model.axes import AXES as AXES_BY_NAME
from orchestrator.model.base import content_hash
from orchestrator.model.device import OURS, Api, Device, EngineAxis, EngineFacts, Precision
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import DeviceChoice, Experiment, Matrix, Sampling, Workload
from orchestrator.report.wording import group_exclusions
from orchestrator.spec.expansion.expand import cells_of, expand, size

from . import make
from .test_axes import VALUES

pytestmark = pytest.mark.slow


def subsets(values: list) -> st.SearchStrategy[tuple]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=len(values), unique=True).map(tuple)


DEPTH = EngineAxis(name="depth", help="how deep it sleeps", default=1, bounds=(1, 2))
NAP = EngineFacts(
    name="nap.pod", takes=("network", "onnx"), apis=(Api.CPU, Api.VULKAN), precisions=(Precision.FP32,), axes=(DEPTH,)
)
AWAY = EngineFacts(name="nap", takes=("network",), missing="install it")
GPU_ALONE = [name for name, axis in AXES_BY_NAME.items() if "cpu" not in axis.backends and name in VALUES]
AXES = st.builds(
    Matrix,
    network=st.none() | subsets(["a", "b"]),
    backend=subsets(list(Api)),
    precision=subsets(list(Precision)),
    algorithm=st.none() | subsets(["direct", "winograd", "sequential"]),
    granularity=st.none() | subsets([1, 4]),
    pixels=st.none() | subsets([1, 4]),
    product=st.none() | subsets(["tiled", "blocked 16x32"]),
    transpose=st.none() | subsets(["naive", "tiled"]),
    threads=st.none() | subsets([1, 2]),
    thread_life=st.none() | subsets(["kept", "per_call"]),
    pipeline=st.none() | subsets(["none", "balanced"]),
    setup=st.none() | subsets(["cold", "warm", "cached"]),
    fuse=st.none() | subsets(["all", "none", "activation+residual"]),
    tuned=st.none() | subsets([True, False]),
    engine=st.none() | subsets([OURS.name, NAP.name, AWAY.name, "none_has_it"]),
    of_engines=st.just({}) | subsets([1, 2, 3, "deep"]).map(lambda values: {"nap.pod.depth": values}),
)
APIS = st.lists(st.sampled_from(list(Api)), unique=True).flatmap(
    lambda names: st.tuples(*(subsets(list(Precision)).map(lambda p, n=n: make.api(n, *p)) for n in names))
)


@st.composite
def farms(draw: st.DrawFn) -> list[Device]:
    serials = draw(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4, unique=True))
    engines = subsets([OURS, NAP, AWAY])
    made = [make.device(serial) for serial in serials]
    return [
        Device(facts=each.facts.model_copy(update={"apis": draw(APIS)}), state=each.state, engines=draw(engines))
        for each in made
    ]


def experiments(count: object = "all") -> st.SearchStrategy[Experiment]:
    """None of thousands of points, which finds no more and takes seconds."""
    return st.builds(
        lambda m, blocks, more: make.experiment(
            matrix=m, sampling=Sampling(blocks=blocks, frames=8), devices=DeviceChoice(count=count),
            workloads=() if m.network else more,
        ),
        AXES, st.integers(1, 3), st.sampled_from([(), (), (Workload(onnx="b.onnx"),)]),
    ).filter(lambda experiment: points(experiment) <= 1500)  # fmt: skip


def points(experiment: Experiment) -> int:
    matrix = experiment.matrix
    models = matrix.network or experiment.every_workload
    return prod(map(len, (models, matrix.backend, matrix.precision, *matrix.options.values())))


@settings(max_examples=30, deadline=None)
@given(experiments(), farms())
def test_jobs_and_exclusions_partition_the_matrix(experiment: Experiment, devices: list[Device]) -> None:
    expansion = expand(experiment, "e-1", devices)
    collapsed = [e for e in expansion.exclusions if not e.serial]
    assert len(expansion.cells) + len(collapsed) == points(experiment)
    assert len({cell.cell_id for cell in expansion.cells}) == len(expansion.cells)
    blocks = experiment.sampling.blocks
    seen = Counter((job.cell.label, job.candidates[0], job.block) for job in expansion.jobs)
    seen.update((e.cell, e.serial, b) for e in expansion.exclusions if e.serial for b in range(blocks))
    wanted = product((c.label for c in expansion.cells), (d.serial for d in devices), range(blocks))
    assert seen == Counter(wanted)
    assert len({job.job_id for job in expansion.jobs}) == len(expansion.jobs)
    assert all(job.job_id == content_hash(job) for job in expansion.jobs), "blocks share the rest of their text"


@settings(max_examples=30, deadline=None)
@given(experiments(), farms())
def test_a_job_only_where_the_device_can(experiment: Experiment, devices: list[Device]) -> None:
    known = {d.serial: d for d in devices}
    for job in expand(experiment, "e-1", devices).jobs:
        device = known[job.candidates[0]]
        offered = device.facts.api(job.cell.backend)
        (engine,) = (each for each in device.engines if each.name == job.cell.engine)
        assert not engine.missing and job.cell.backend in engine.apis and job.cell.precision in engine.precisions
        assert offered is not None and job.cell.precision in offered.precisions
        own = {name: value for name, value in job.cell.options.items() if name not in AXES_BY_NAME}
        assert not own or (job.cell.engine == NAP.name and own["nap.pod.depth"] in (1, 2)), "a host says it"
        assert all(job.cell.backend in AXES_BY_NAME[name].backends for name in job.cell.options.keys() - own)


@settings(max_examples=30, deadline=None)
@given(experiments().filter(lambda experiment: "deep" not in experiment.matrix.options.get("nap.pod.depth", ())))
def test_size_counts_what_expand_makes(experiment: Experiment) -> None:
    every = tuple(
        EngineFacts(name=name, takes=("network", "onnx"), axes=(DEPTH.model_copy(update={"bounds": (1, 3)}),))
        for name in (OURS.name, NAP.name, AWAY.name, "none_has_it")
    )
    able = make.device("A", *(make.api(name, *Precision) for name in Api)).model_copy(update={"engines": every})
    expansion = expand(experiment, "e-1", [able])
    assert size(experiment) == len(expansion.jobs) == len(expansion.cells) * experiment.sampling.blocks


@settings(max_examples=15, deadline=None)
@given(experiments(), farms(), st.randoms())
def test_the_order_of_devices_does_not_matter(experiment: Experiment, devices: list[Device], random: object) -> None:
    shuffled = list(devices)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert expand(experiment, "e", shuffled) == expand(experiment, "e", devices)


def test_our_own_engine_by_name_is_the_cell_and_the_experiment_of_before() -> None:
    """Histories go on, and files of yesterday have the identity of yesterday."""
    plain, named = (make.experiment(matrix=Matrix(engine=each)) for each in (None, (OURS.name,)))
    assert [*map(content_hash, cells_of(plain))] == [*map(content_hash, cells_of(named))]
    assert "engine" not in plain.matrix.model_dump() and "wait" not in plain.workload.model_dump()


@given(st.sampled_from(["onnxruntime", "benchmark_model", "llama.cpp", "executor_runner"]), st.data())
def test_a_misspelt_engine_is_told_which_was_meant(name: str, data: st.DataObject) -> None:
    """Whatever letter is away, and whether it is installed there or not."""
    place = data.draw(st.integers(0, len(name) - 1))
    known = EngineFacts(name=name, takes=("network",), missing=data.draw(st.sampled_from(["", "install it"])))
    device = make.device("A").model_copy(update={"engines": (OURS, known)})
    made = make.experiment(matrix=Matrix(engine=(name[:place] + name[place + 1 :],)))
    (excluded,) = expand(made, "e", [device]).exclusions
    assert excluded.reason.endswith(f": did you mean `{name}`?")


def test_an_engine_runs_what_it_takes() -> None:
    waits = make.experiment(workload=Workload(wait="200 ms"), matrix=Matrix(engine=("wait", OURS.name)))
    device = make.device("A").model_copy(update={"engines": (OURS, EngineFacts(name="wait", takes=("wait",)))})
    found = expand(waits, "e", [device])
    assert {job.cell.engine for job in found.jobs} == {"wait"} and size(waits) == 2 * len(found.jobs)
    assert [each.reason for each in found.exclusions] == [
        "engine pocketfarm runs no `wait` of a workload (it runs: network, onnx, language_model)"
    ]
    with pytest.raises(SpecError, match="the workload has `wait`"):
        expand(waits.model_copy(update={"matrix": Matrix(network=("a",))}), "e", [device])


def test_size_of_a_million_is_counted_at_once() -> None:
    wide = Matrix(network=tuple(f"n{i}" for i in range(1000)), granularity=tuple(range(4, 41, 4)), fuse=("all", "none"))
    assert size(make.experiment(matrix=wide, sampling=Sampling(blocks=50))) == 1_000_000


def test_blocks_are_interleaved() -> None:
    jobs = expand(make.many(2), "e", [make.device("B"), make.device("A")]).jobs
    assert [(j.block, j.candidates) for j in jobs] == [(0, ("A",)), (0, ("B",)), (1, ("A",)), (1, ("B",))]


def test_count_any_and_n() -> None:
    farm = [make.device("C"), make.device("A", make.api(Api.CPU)), make.device("B"), make.device("D")]
    either = expand(make.many(1, count="any"), "e", farm)
    assert [j.candidates for j in either.jobs] == [("B", "C", "D")]
    assert [(e.serial, e.reason) for e in either.exclusions] == [("A", "the device has no opencl (it has cpu)")]
    others = expand(make.many(2, count="any"), "e", farm[:3]).jobs  # another choice of devices, and another block
    assert len({job.job_id for job in (*either.jobs, *others)}) == 3
    two = expand(make.many(1, count=2), "e", farm)
    assert [j.candidates for j in two.jobs] == [("B",), ("C",)]
    assert [e.serial for e in two.exclusions] == ["A", "D"]


def test_exclusions_tell_their_reasons() -> None:
    experiment = make.experiment(matrix=Matrix(backend=(Api.OPENCL,), precision=(Precision.FP16,), threads=(1, 2)))
    unknown = make.device("U", health="unauthorized", reason="accept the key on the phone")
    unknown = unknown.model_copy(update={"facts": unknown.facts.model_copy(update={"apis": ()})})
    expansion = expand(experiment, "e", [make.device("A"), unknown])
    assert [(e.serial, e.reason) for e in expansion.exclusions] == [
        ("", f"threads: {gpu_alone('opencl', 'none')}; run once without it"),
        ("A", "the device's opencl has no fp16 (it has fp32)"),
        ("U", "its APIs are not known (unauthorized: accept the key on the phone)"),
    ]
    assert expansion.jobs == ()


@given(st.sets(st.sampled_from(GPU_ALONE), min_size=1, max_size=3), subsets(["a", "b"]), subsets(list(Precision)))
def test_axes_that_mean_nothing_are_told_in_one_line(
    names: set[str], networks: tuple[str, ...], precisions: tuple[Precision, ...]
) -> None:
    values = {name: VALUES[name][-2:] for name in names}
    matrix = Matrix.model_validate({"network": networks, "backend": (Api.CPU,), "precision": precisions, **values})
    found = expand(make.experiment(matrix=matrix), "e", [make.device("A", make.api(Api.CPU))]).exclusions
    (told,) = (each for each in group_exclusions(found) if "run once" in each.reason)
    assert names <= set(re.findall(r"\w+", told.reason)) and told.reason.count("nothing on cpu") == 1


def test_a_selection_that_matches_nothing_lists_the_devices() -> None:
    experiment = make.experiment(devices=DeviceChoice(where='gpu_vendor == "adreno"'))
    with pytest.raises(SpecError, match=r'A: gpu_vendor == "adreno" \(here unknown\)'):
        expand(experiment, "e", [make.device("A")])
    with pytest.raises(SpecError, match="2 devices are wanted, 1 of all match"):
        expand(make.many(1, count=2), "e", [make.device("A")])
    with pytest.raises(SpecError, match="none"):
        expand(make.many(1), "e", [])


def test_a_network_axis_with_an_onnx_file_is_refused() -> None:
    both = make.experiment(workload=Workload(onnx="m.onnx"), matrix=Matrix(network=("a",)))
    with pytest.raises(SpecError, match="remove one of them"):
        expand(both, "e", [make.device("A")])


def studyc(**axes: object) -> Experiment:
    """Streams of 100 frames on the CPU backend."""
    return make.experiment(matrix=Matrix(backend=(Api.CPU,), **axes), sampling=Sampling(blocks=1, frames=100))  # type: ignore[arg-type]


def excluded(experiment: Experiment) -> dict[str, str]:
    found = expand(experiment, "e", [make.device("A", make.api(Api.CPU), make.api(Api.OPENCL))])
    return {e.cell: e.reason for e in found.exclusions}


def test_what_does_not_go_together_is_excluded_with_its_reason() -> None:
    found = excluded(studyc(algorithm=("sequential", "im2col"), threads=(1, 2), pipeline=("none", "balanced")))
    name = "squeezenet_v1_0 cpu fp32"
    assert {label.removeprefix(name).strip(): why.split(":")[0] for label, why in found.items()} == {
        "algorithm=sequential frames=100 pipeline=none threads=2":
            "algorithm `sequential` is the reference on one thread, not on 2",
        "algorithm=sequential frames=100 pipeline=balanced threads=1":
            "algorithm `sequential` is the reference on one thread",
        "algorithm=sequential frames=100 pipeline=balanced threads=2":
            "algorithm `sequential` is the reference on one thread, not on 2",
        "algorithm=im2col frames=100 pipeline=balanced threads=1":
            "a pipeline has at least two stages, each with a thread of its own",
    }  # fmt: skip
    (why,) = excluded(studyc(pipeline=("balanced",), thread_life=("per_call",))).values()
    assert why == "the stages of a pipeline keep their threads"


def test_a_granularity_that_an_algorithm_lacks_is_excluded_and_runs_nowhere() -> None:
    asked = make.experiment(
        matrix=Matrix(algorithm=("dot", "direct"), granularity=(1, 4, 6)), sampling=Sampling(blocks=1)
    )
    found = expand(asked, "e", [make.device("A")])
    ran = [(cell.options["algorithm"], cell.options["granularity"]) for cell in found.cells]
    assert ran == [("dot", 1), ("dot", 4), ("dot", 6), ("direct", 4)]
    assert [e.reason.partition(":")[0] for e in found.exclusions] == [
        "granularity 1 does not fit", "granularity 6 does not fit",
    ]  # fmt: skip


def test_an_algorithm_that_a_backend_lacks_is_excluded_there() -> None:
    axes = Matrix(backend=(Api.CPU, Api.OPENCL), algorithm=("sequential", "window", "im2col"))
    found = expand(make.experiment(matrix=axes), "e", [make.device("A", make.api(Api.CPU), make.api())])
    assert [(c.backend, c.options["algorithm"]) for c in found.cells] == [
        ("cpu", "sequential"), ("cpu", "im2col"), ("opencl", "window"), ("opencl", "im2col"),
    ]  # fmt: skip
    assert {e.reason.partition(" (")[0] for e in found.exclusions} == {
        "cpu has no algorithm `window`", "opencl has no algorithm `sequential`",
    }  # fmt: skip


def test_streams_and_batches_are_part_of_a_cell() -> None:
    """A throughput is never compared with a latency of the same name."""
    single = make.experiment(matrix=Matrix(batch=(1, 4)))
    stream = make.experiment(matrix=Matrix(batch=(1, 4)), sampling=Sampling(frames=8))
    cells = [expand(each, "e", [make.device()]).cells for each in (single, stream)]
    assert len({cell.cell_id for found in cells for cell in found}) == 4
    assert [(cell.batch, cell.frames, cell.inferences) for cell in cells[1]] == [(1, 8, 8), (4, 8, 2)]
    assert [(cell.batch, cell.frames, cell.inferences) for cell in cells[0]] == [(1, 1, 1), (4, 1, 1)]
    assert cells[1][1].label == "squeezenet_v1_0 opencl fp32 batch=4 frames=8"


def test_sizes_are_said_with_their_units() -> None:
    axes = Matrix.model_validate({"memory_budget": ["8 MB", "6.7 MB"], "workspace": "16 MiB"})
    cells = expand(make.experiment(matrix=axes), "e", [make.device()]).cells
    assert [cell.label.partition("fp32 ")[2] for cell in cells] == [
        "memory_budget=8 MB workspace=16 MiB", "memory_budget=6700 kB workspace=16 MiB",
    ]  # fmt: skip


def test_cores_as_an_axis_become_the_job_s_condition() -> None:
    found = expand(make.experiment(matrix=Matrix(affinity=("big", "0-1"))), "e", [make.device()])
    assert {(job.cell.options["affinity"], job.conditions.affinity) for job in found.jobs} == {
        ("big", "big"), ("0-1", "0-1"),
    }  # fmt: skip


def test_tuned_and_untuned_plans_are_compared_on_every_backend() -> None:
    device = make.device("A", *(make.api(api) for api in Api))
    found = expand(make.experiment(matrix=Matrix(backend=tuple(Api), tuned=(True, False))), "e", [device])
    ran = {(job.cell.backend, job.cell.options["tuned"]) for job in found.jobs}
    assert ran == set(product(Api, (True, False))) and found.exclusions == ()
