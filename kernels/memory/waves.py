"""Steps in waves: those that need nothing of each other stand side by side, so that a device may run them together.

Vulkan orders steps by barriers, and each lets the device run dry. Steps sorted by the longest way to them need one
barrier a wave; memory is shared between waves, not within one, or the steps would have to wait for each other again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from kernels.errors import checkpoint
from kernels.lower.draft import Draft
from kernels.plan.steps import Touches, accesses


def in_waves(draft: Draft) -> Draft:
    """The same steps, each as early as what it reads and overwrites allows. Of drafts that are not swapped yet."""
    parameters = draft.parameters
    earlier = defaultdict[str, Touches](Touches)
    waves: list[int] = []
    for step in draft.steps:
        checkpoint()
        own = list(accesses(step, parameters))
        waves.append(max((earlier[access.buffer].latest(access) for access in own), default=-1) + 1)
        for access in own:
            earlier[access.buffer].add(access, waves[-1])
    order = sorted(range(len(waves)), key=lambda index: waves[index])
    return replace(draft, steps=[draft.steps[i] for i in order], waves=[waves[i] for i in order])
