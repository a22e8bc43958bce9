"""Device memory of a plan over its steps: what is alive in each, beside what all of it takes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from .model import Plan
from .steps import LASTING, lifetimes


@dataclass(frozen=True)
class LiveMemory:
    """Bytes of a plan."""

    lasting: int
    """Weights that are not offloaded, inputs and outputs, which stay throughout."""
    activations: tuple[int, ...]
    """Alive in each step, with scratch and weights that are swapped in; what is swapped out is not."""
    allocated: int
    """Of all pools."""

    @property
    def most(self) -> int:
        """The largest live set: a lower bound of what the plan's steps, in their order, can be placed in."""
        return self.lasting + max(self.activations, default=0)

    @property
    def gaps(self) -> int:
        """Bytes that placing loses: pools beyond the largest live set."""
        return self.allocated - self.most


def live_memory(plan: Plan) -> LiveMemory:
    """Where each buffer is counted from the first step that touches it to the last, once for each stay."""
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    roles = {buffer.id: buffer.role for buffer in plan.buffers}
    changes = [0] * (len(plan.steps) + 1)
    for name, spans in lifetimes(plan.steps, roles).items():
        for span in spans if roles[name] not in LASTING else ():
            changes[span.first] += sizes[name]
            changes[span.last + 1] -= sizes[name]
    lasting = sum(size for name, size in sizes.items() if roles[name] in LASTING)
    return LiveMemory(lasting, tuple(accumulate(changes[:-1])), sum(pool.bytes for pool in plan.pools))
