"""States: buffers of a plan that live on between its runs, and what a run leaves in them."""

from __future__ import annotations

from collections.abc import Callable

from kernels.ir.graph import Graph, Node
from kernels.plan.model import Copy

from .draft import Draft

Place = tuple[str, int]
"""A buffer, and the first byte in it."""


def writes_in_place(graph: Graph, node: Node) -> bool:
    """Return whether a node puts rows into a state itself: nothing else reads what was there before."""
    source = node.inputs[0]
    return source in graph.state and graph.readers[source] == [node] and node.inputs.count(source) == 1


def copy_for(draft: Draft, node: Node, source: Place, target: str) -> None:
    """Copy the tensor into which a node puts rows."""
    size = draft.buffers[target].size
    draft.steps.append(Copy(layer=node.name, source=source[0], source_offset=source[1], target=target, bytes=size))


def keep_states(draft: Draft, graph: Graph, place: Callable[[str], Place]) -> None:
    """Append the copies of what a run leaves in the states, where it was not computed in place. `place`: where a tensor
    lies row-major."""
    for name, new in graph.state.items():
        (state, _), (source, first) = place(name), place(new)
        if source != state:
            copy = Copy(layer=new, source=source, source_offset=first, target=state, bytes=draft.buffers[state].size)
            draft.steps.append(copy)
