"""Tuning the CPU backend on the agent itself: a search, its database, and the plan that comes of it."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import pytest

from kernels.compile import compile_graph
from kernels.frontend.load import load_workload, random_inputs
from kernels.ir.graph import Graph
from kernels.options import Choice, Limits, Options
from kernels.reference import evaluate
from kernels.tuning import (
    Budgeted,
    Database,
    Ran,
    Strategy,
    Trial,
    applicable,
    candidates,
    default_choice,
    device_key,
    distinct,
    read,
    trial,
    tune,
)
from tests.contract.agent.driver import Agent
from tests.unit.kernels.back.graphs import relative_error
from tests.unit.kernels.back.test_cpu_tuning import joined

BUDGET_S = 3.0
THREADS = 2
KEY = device_key("cpu", "this processor", "agent", threads=THREADS)
CPU = Options("cpu", threads=THREADS)


def run_trial(agent: Agent, plan: Trial, passes: int) -> Ran:
    ended = agent.run(plan.bundle, plan.inputs, "--warmup", 1, "--layer-passes", passes, "--threads", THREADS)
    assert ended.code == 0, ended.events[-1]
    layers: dict[str, list[float]] = defaultdict(list)
    for event in ended.all("layer"):
        layers[event.layer].append(event.duration_ns / 1e6)
    (port,) = plan.bundle.plan.outputs
    return Ran(layers, {port.name: ended.output().reshape(port.shape)})


def network_error(agent: Agent, graph: Graph, tuned: dict[str, Choice]) -> float:
    """The error of the network with these choices, which its plan must name."""
    bundle = compile_graph(graph, Options("cpu", threads=THREADS, tuned=tuned), Limits())
    chosen = [words for name, words in bundle.plan.options.items() if name.startswith("algorithm:")]
    wanted = [tuned.get(key) or default_choice(layer, CPU, Limits()) for key, layer in distinct(graph, CPU).items()]
    assert chosen == [choice.words for choice in wanted]
    inputs = random_inputs(graph, 5)
    ended = agent.run(bundle, inputs, "--warmup", 1, "--samples", 1, "--threads", THREADS)
    assert ended.code == 0, ended.events[-1]
    ((name, right),) = evaluate(graph, inputs).items()
    return relative_error(ended.output().reshape(graph.shapes[name]), right)


def test_lenet_is_tuned_and_computes_the_same(agent: Agent, tmp_path: Path) -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    database, ends_at = Database(tmp_path / "tuning.json"), time.monotonic() + BUDGET_S

    def strategy(left: int) -> Strategy:
        return Budgeted(max(0.0, ends_at - time.monotonic()) / left)

    found = tune(
        graph, CPU, Limits(), lambda plan, passes: run_trial(agent, plan, passes), device=KEY, database=database,
        strategy=strategy,
    )  # fmt: skip
    assert [each.conv for each in found] == list(distinct(graph, CPU)) and len(found) == 2
    assert all(each.ms > 0 and each.default_ms and each.failed == 0 and each.tried >= 3 for each in found)
    assert network_error(agent, graph, {each.conv: each.choice for each in found}) <= 1e-5

    database.mark(KEY, "fp32", [each.conv for each in found], kept=True)
    database.save(tmp_path / "exported.json")
    other = Database()
    assert other.merge(read(tmp_path / "exported.json")) == 2
    known = other.tuned(KEY, "fp32")
    assert known == {each.conv: each.choice for each in found if not each.is_default}
    assert applicable(graph, CPU, Limits(), known) == known
    assert other.tuned(device_key("cpu", "this processor", "agent", threads=1), "fp32") == {}


def test_every_candidate_in_the_network_computes_the_same(agent: Agent) -> None:
    """Whatever a search may find, beside layers in the other layout."""
    graph = load_workload(network="lenet", onnx=None, seed=1)
    for key, layer in distinct(graph, CPU).items():
        for choice in candidates(layer, CPU, Limits())[1:]:
            assert network_error(agent, graph, {key: choice}) <= 1e-5


def test_joined_parts_in_different_layouts_compute_the_same(agent: Agent) -> None:
    graph = joined()
    narrow, wide, _ = distinct(graph, CPU)
    for key in (narrow, wide):
        assert network_error(agent, graph, {key: Choice("direct")}) <= 1e-5


@pytest.mark.parametrize("network", ["squeezenet_v1_1", "mobilenet_v2"])
def test_trials_name_the_steps_that_the_agent_times(agent: Agent, network: str) -> None:
    graph = load_workload(network=network, onnx=None, seed=1)
    layer = max(distinct(graph, CPU).values(), key=lambda layer: len(candidates(layer, CPU, Limits())))
    tried = candidates(layer, CPU, Limits())
    plan = trial(layer, tried, CPU, Limits())
    ran = run_trial(agent, plan, 2)
    for index, choice in enumerate(tried):
        own = [step for step in plan.steps[str(index)] if step in ran.layers_ms]
        assert str(index) in own and len(own) in (1, 2, 3), choice
        assert all(len(ran.layers_ms[step]) == 2 for step in own)
    ((name, right),) = evaluate(plan.graph, plan.inputs).items()
    assert relative_error(ran.outputs[name], right) <= 1e-4
