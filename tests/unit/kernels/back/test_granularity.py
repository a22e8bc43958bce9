"""Study S's rule: the channels over g are to be divisible by four; layers of which that is not so refuse g."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.compile import compile_graph
from kernels.errors import OptionError
from kernels.frontend.load import load_workload
from kernels.ir.graph import Graph
from kernels.options import Backend, Limits, Options
from kernels.plan.model import Plan
from workers.engines.pocketfarm.plans.layer_memory import layer_memory

from .graphs import Builder

ROOT = Path(__file__).resolve().parents[4]
LOGS = ROOT.parent / "shared" / "data" / "mobile_convnet" / "galaxy_s7"


def divides(channels: int, g: int) -> bool:
    return (channels / g) % 4 == 0


def layers(first: int, second: int) -> Graph:
    build = Builder()
    return build.outputs(build.conv(build.conv(build.input(1, 3, 5, 5), first, (3, 3)), second, (1, 1)))


def by_study(plan: Plan) -> dict[str, str]:
    """Layer -> its program, of those that the study's kernel computes."""
    return {step.layer: step.program for step in plan.steps if step.program.startswith("conv_dot")}


@given(
    g=st.integers(1, 64),
    times=st.integers(1, 4),
    channels=st.integers(1, 200) | st.integers(1, 40).map(lambda n: 4 * n),
    backend=st.sampled_from(["opencl", "vulkan"]),
    cpu_device=st.booleans(),
)
def test_a_layer_is_refused_where_the_text_says_so(
    g: int, times: int, channels: int, backend: Backend, cpu_device: bool
) -> None:
    graph, limits = layers(4 * g * times, channels), Limits(cpu_device=cpu_device)
    plan = compile_graph(graph, Options(backend, algorithm="dot", granularity=g), limits).plan
    fitting = {"conv0", "conv1"} if divides(channels, g) else {"conv0"}
    assert set(by_study(plan)) == fitting and set(plan.refused) == {"conv0", "conv1"} - fitting
    assert all(f"{channels} channels over a granularity of {g} are" in why for why in plan.refused.values())
    assert {each.layer: each.refused for each in layer_memory(plan) if each.refused} == plan.refused
    anyway = compile_graph(graph, Options(backend, algorithm="dot_uneven", granularity=g), limits).plan
    assert all(f"outputs{g}_" in program for program in by_study(anyway).values()) and not anyway.refused
    assert set(by_study(anyway)) == {"conv0", "conv1"}
    if "conv1" not in fitting:
        with pytest.raises(OptionError, match="fits nowhere in this network"):
            compile_graph(layers(channels, channels), Options(backend, algorithm="dot", granularity=g), limits)


def squeezenet_channels() -> dict[str, int]:
    graph = load_workload(network="squeezenet_v1_0", onnx=None, seed=1)
    return {node.name: graph.shapes[node.output][1] for node in graph.nodes if node.op == "conv"}


def test_every_choice_that_is_shipped_is_one_of_the_study() -> None:
    channels = squeezenet_channels()
    shipped = json.loads((ROOT / "experiments" / "study_s_choices.json").read_bytes())["layers"]
    assert {each["layer"] for each in shipped} == set(channels)
    wrong = [
        (each["layer"], own)
        for each in shipped
        for own in (each["best"], each["worst"])
        if own["algorithm"] != "dot" or not divides(channels[each["layer"]], own["granularity"])
    ]
    assert wrong == []


def test_the_authors_logged_just_the_layers_that_their_rule_allows() -> None:
    if not LOGS.is_dir():
        pytest.skip("the authors' data (shared/data/mobile_convnet) are not on this machine")
    channels, files = squeezenet_channels(), sorted(LOGS.glob("logs*/[0-9]*.txt"))
    assert len(files) > 10
    for file in files:
        logged = {name.lower() for name in re.findall(r"^(\w+) \(ms\)", file.read_text(), re.MULTILINE)}
        allowed = {name for name, count in channels.items() if divides(count, int(file.stem))}
        assert logged & set(channels) == allowed, file.name
