"""The cheapest division of a network between GPU and CPU: exact for any graph, and said in words that place it."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.compile.cheapest import Division, Tensor, Times, divided, tensors
from kernels.errors import OptionError
from kernels.frontend.load import load_workload
from kernels.ir.placement import Placement, owners, words_of

from .graphs import generator

LAYERS = "abcdefg"
ms = st.integers(0, 50).map(float)


@st.composite
def networks(draw: st.DrawFn) -> tuple[dict[str, Times], list[Tensor]]:
    names = LAYERS[: draw(st.integers(2, len(LAYERS)))]
    later = st.integers(0, len(names) - 2).flatmap(
        lambda at: st.tuples(st.just(names[at]), st.frozensets(st.sampled_from(names[at + 1 :]), min_size=1))
    )
    made = draw(st.lists(later, max_size=9))
    return (
        {name: Times(draw(ms), draw(ms)) for name in names},
        [Tensor(draw(st.integers(1, 9)), maker, readers) for maker, readers in made],
    )


def cost(times: dict[str, Times], between: list[Tensor], fixed: float, on_cpu: frozenset[str]) -> float:
    layers = sum(each.cpu if name in on_cpu else each.gpu for name, each in times.items())
    moved = [t for t in between if any((name in on_cpu) != (t.maker in on_cpu) for name in t.readers)]
    return layers + sum(fixed + tensor.bytes for tensor in moved)


@given(networks(), ms)
def test_no_division_is_cheaper(network: tuple[dict[str, Times], list[Tensor]], fixed: float) -> None:
    times, between = network
    found = divided(times, between, lambda size: fixed + size)
    every = [frozenset(some) for count in range(len(times) + 1) for some in combinations(times, count)]
    both = [each for each in every if 0 < len(each) < len(times)]
    for division, allowed in zip(found, (every, both), strict=True):
        assert division.on_cpu in allowed
        assert division.ms == cost(times, between, fixed, division.on_cpu)
        assert division.ms == min(cost(times, between, fixed, each) for each in allowed)


def test_one_layer_cannot_be_divided() -> None:
    alone = Division(frozenset("a"), 1.0)
    assert divided({"a": Times(2.0, 1.0)}, [], float) == (alone, alone)


def test_words_place_what_was_chosen() -> None:
    graph = load_workload(network="googlenet", onnx=None, seed=1)
    own = owners(graph)
    deciding = [node.name for node in graph.nodes if own[node.name] == node.name]
    chosen = {name for name in deciding if generator().random() < 0.5} ^ {deciding[0]} or {deciding[0]}
    placed = Placement.of(words_of(graph, chosen)).on_cpu(graph)
    assert {name for name in deciding if placed[name]} == chosen
    assert all(placed[name] == placed[by] for name, by in own.items())


def test_layers_and_ranges_of_layers() -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)

    def on_cpu(words: str) -> list[str]:
        return [name for name, cpu in Placement.of(words).on_cpu(graph).items() if cpu]

    assert on_cpu("layers pool1..conv2+ip2") == ["pool1", "conv2", "ip2", "prob"]
    assert on_cpu("layers pool1") == ["pool1"]
    with pytest.raises(OptionError, match="did you mean pool1"):
        on_cpu("layers conv1..pool11")
    with pytest.raises(OptionError, match="none of the layers"):
        on_cpu("layers ip2..conv1")


def test_a_tensor_is_as_large_as_its_transfer() -> None:
    graph = load_workload(network="lenet", onnx=None, seed=1)
    found = {each.maker: each for each in tensors(graph)}
    assert found["pool1"] == Tensor(4 * 20 * 12 * 12, "pool1", frozenset({"conv2"}))
    assert found["ip1"].readers == {"ip2"}, "what lies between is placed with ip1"
