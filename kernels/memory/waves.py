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
    """The same steps, each as early as what it reads and overwrites allows; what needs weights alone stands just before
    the first that needs it, or copies for all layers would live at once. Of drafts that are not swapped yet."""
    parameters, roles = draft.parameters, draft.roles
    earlier = defaultdict[str, Touches](Touches)
    users = defaultdict[str, list[int]](list)
    waves: list[int] = []
    for index, step in enumerate(draft.steps):
        checkpoint()
        own = list(accesses(step, parameters))
        waves.append(max((earlier[access.buffer].latest(access) for access in own), default=-1) + 1)
        for access in own:
            earlier[access.buffer].add(access, waves[-1])
            users[access.buffer].append(index)
    for index in (at for at, wave in enumerate(waves) if wave == 0):
        own = list(accesses(draft.steps[index], parameters))
        if all(roles[access.buffer] == "weight" for access in own if access.reads):
            later = [waves[at] for access in own if access.writes for at in users[access.buffer] if at != index]
            waves[index] = max(0, min(later, default=0) - 1)
    order = sorted(range(len(waves)), key=lambda index: waves[index])
    return replace(draft, steps=[draft.steps[i] for i in order], waves=[waves[i] for i in order])
