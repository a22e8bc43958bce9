"""Laws of the memory plan, on random lifetimes."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.lower.draft import Draft
from kernels.memory.layout import POOLS, lives_of, plan_memory
from kernels.plan.model import Copy, Tensor
from kernels.plan.steps import Span

SIZES = st.integers(1, 4000)
ROLES = st.sampled_from(["activation", "scratch", "weight", "input", "output"])


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """Random buffers, and steps that copy between random pairs of them."""
    draft = Draft("random")
    for index, (size, role) in enumerate(draw(st.lists(st.tuples(SIZES, ROLES), min_size=2, max_size=14))):
        draft.add_buffer(f"b{index}", size, role, Tensor(shape=(size,), dtype="u8"))
    names = list(draft.buffers)
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    for source, target in draw(st.lists(pairs, min_size=1, max_size=20)):
        draft.steps.append(Copy(layer="copy", source=source, target=target, bytes=1))
    return draft


@settings(max_examples=100, deadline=None)
@given(
    draft=drafts(),
    alignment=st.sampled_from([16, 64, 256, 4096]),
    largest=st.sampled_from([0, 4096, 10_000]),
    objects=st.booleans(),
)
def test_buffers_that_live_together_never_overlap(draft: Draft, alignment: int, largest: int, objects: bool) -> None:
    layout = plan_memory(draft, alignment=alignment, largest=largest, objects=objects)
    pools, places = layout.pools, layout.places
    lives, buffers = lives_of(draft), draft.buffers
    assert set(places) == set(lives)
    sizes = {pool.id: pool.bytes for pool in pools}
    for a, b in combinations(places, 2):
        if places[a].pool == places[b].pool and lives[a].meets(lives[b]):
            first, second = sorted((a, b), key=lambda name: places[name].offset)
            assert places[first].offset + buffers[first].size <= places[second].offset
    for name, place in places.items():
        assert place.offset % alignment == 0
        assert place.offset + buffers[name].size <= sizes[place.pool]
        assert place.pool.startswith(POOLS[buffers[name].role])
    if largest:
        biggest = max(buffer.size for buffer in buffers.values())
        assert all(size <= max(largest, biggest) for size in sizes.values())


@settings(max_examples=50, deadline=None)
@given(draft=drafts())
def test_the_arena_is_at_least_what_lives_at_once_and_at_most_everything(draft: Draft) -> None:
    layout = plan_memory(draft, alignment=16, largest=0)
    arena = sum(pool.bytes for pool in layout.pools if pool.id == "arena")
    lives = lives_of(draft)
    held = [(lives[name], draft.buffers[name].size) for name, place in layout.places.items() if place.pool == "arena"]
    now = [Span(step, step) for step in range(len(draft.steps))]
    peak = max(sum(size for life, size in held if life.meets(step)) for step in now)
    assert peak <= arena <= sum(size for _, size in held)


def test_a_chain_needs_two_buffers() -> None:
    draft = Draft("chain")
    for index in range(10):
        draft.add_buffer(f"b{index}", 1024, "activation", Tensor(shape=(1024,), dtype="u8"))
    for index in range(9):
        draft.steps.append(Copy(layer="copy", source=f"b{index}", target=f"b{index + 1}", bytes=1024))
    pools = plan_memory(draft, alignment=16, largest=0).pools
    assert [pool.bytes for pool in pools] == [2048]


def test_shared_objects_are_reused_and_need_no_offsets() -> None:
    draft = Draft("chain")
    for index in range(6):
        draft.add_buffer(f"b{index}", 1600 - 16 * index, "activation", Tensor(shape=(1,), dtype="u8"))
    for index in range(5):
        draft.steps.append(Copy(layer="copy", source=f"b{index}", target=f"b{index + 1}", bytes=1))
    layout = plan_memory(draft, alignment=16, largest=0, objects=True)
    assert {place.offset for place in layout.places.values()} == {0}
    assert [pool.bytes for pool in layout.pools] == [1600, 1584]
