"""A whole block in simulated time: what the agent would write on a phone of this profile, and the truth beside it.

Rest - warm-up - load - rest, as `pocketfarm-agent run --idle-ms ... --load-ms ...` does it, with the physics and the
fuel gauge of the virtual phones, in milliseconds. Faults can be injected. The same arguments give the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from virtual_phones.profile import Profile

from .journal import journal, parts
from .story import Answers, Course, Fault, FaultKind, Truth, tell

__all__ = ["Answers", "Course", "Fault", "FaultKind", "Simulated", "Truth", "simulate"]


@dataclass(frozen=True, slots=True)
class Simulated:
    """`events` are the journal's lines; `parts` are those lines as a follower sees them between drops of the cable."""

    events: tuple[dict[str, Any], ...]
    parts: tuple[tuple[dict[str, Any], ...], ...]
    truth: Truth


def simulate(
    profile: Profile, course: Course, seed: int, faults: Sequence[Fault] = (), gauge_gain: float = 1.0
) -> Simulated:
    """One block. `gauge_gain`: what the gauge multiplies the current by, 1 for one without error."""
    story = tell(profile, course, seed, faults, gauge_gain)
    events = journal(profile, course, story, seed, faults)
    return Simulated(events, parts(events, story, faults), story.truth)
