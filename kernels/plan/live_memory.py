"""Device memory of a plan over its steps: what is alive in each, beside what all of it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from .model import Plan, SwapIn
from .steps import LASTING, lifetimes


@dataclass(frozen=True)
class LiveMemory:
    """Bytes of a plan."""

    lasting: int
    """Weights that are not offloaded, inputs and outputs, which stay throughout."""
    activations: tuple[int, ...]
    """Alive in each step, with scratch; what is swapped out is not."""
    swapped_weights: tuple[int, ...]
    """Offloaded weights that are on the device in each step."""
    allocated: int
    """Bytes of all pools."""

    @property
    def most(self) -> int:
        """The largest live set: a lower bound of what the plan's steps, in their order, can be placed in."""
        return self.lasting + max(map(sum, zip(self.activations, self.swapped_weights, strict=True)), default=0)

    @property
    def gaps(self) -> int:
        """Bytes that placing loses: pools beyond the largest live set."""
        return self.allocated - self.most


def live_memory(plan: Plan) -> LiveMemory:
    """Count each buffer from the first step that touches it to the last, once for each stay."""
    sizes = {buffer.id: buffer.bytes for buffer in plan.buffers}
    roles = {buffer.id: buffer.role for buffer in plan.buffers}
    changes = {is_weight: [0] * (len(plan.steps) + 1) for is_weight in (False, True)}
    weights = _offloaded(plan, roles)
    for name, spans in lifetimes(plan.steps, roles).items():
        for span in spans if roles[name] not in LASTING else ():
            changes[name in weights][span.first] += sizes[name]
            changes[name in weights][span.last + 1] -= sizes[name]
    lasting = sum(size for name, size in sizes.items() if roles[name] in LASTING)
    activations, swapped = (tuple(accumulate(changes[is_weight][:-1])) for is_weight in (False, True))
    return LiveMemory(lasting, activations, swapped, sum(pool.bytes for pool in plan.pools))


def _offloaded(plan: Plan, roles: Mapping[str, str]) -> frozenset[str]:
    """Every stay of an offloaded weight: the first is called as the weight, later ones say whose content they take."""
    ins = (step for step in plan.steps if isinstance(step, SwapIn))
    return frozenset(step.buffer for step in ins if roles[step.host or step.buffer] == "offloaded")
