"""The cause of a change: the candidate, the device, the farm, or unknown.

Sides that ran next to each other on one phone share its heat, its battery and its system. So a change of their ratio is
not the device's, unless nothing of the candidate changed that night and something of the device did. A change of the
level, on the other hand, that other cells of the device share is the device's, and the farm's where most other devices
share it too. Of an experiment of one side only what the other cells did can be known, and what the blocks say ran them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .series import OF_A_SIDE, Cause, Figure, Key

ALIKE = 0.5
"""A cell moved too where it moved by at least this share of the change, in the same direction."""
MOST = 2 / 3
AROUND = 4
"""Nights before and after that are held against each other."""

Facts = dict[str, tuple[str, str]]
Levels = Mapping[Key, np.ndarray]
"""Logarithms by night, of side A; not a number in nights without a figure."""


class Blame(NamedTuple):
    cause: Cause
    because: str
    also: Facts
    """The other changes of that night: before, after."""


def of_ratio(before: Figure | None, after: Figure | None, moved_a: float, moved_b: float, *, own: bool) -> Blame:
    """Blame a change of B over A. `moved_a`, `moved_b`: by how much each side moved, in logarithms; `own`: whether
    the level of the device does not explain it."""
    also = changed(before, after)
    side_a, side_b = _own(before, after, "a"), _own(before, after, "b")
    known = all(each is not None and bool(each.facts_a) and bool(each.facts_b) for each in (before, after))
    around = {name: each for name, each in also.items() if name not in OF_A_SIDE}
    if known and not side_a and not side_b:
        if around:
            return Blame("device", f"nothing of either side changed that night, but {_names(around)} did", also)
        return Blame("unknown", "the ratio of the sides changed, but nothing of either side did that night", also)
    if not own:
        return Blame("device", "the ratio moved with the device or over weeks: heat or battery may explain it", also)
    if side_a and (not side_b or abs(moved_a) > 2 * abs(moved_b)):
        return Blame("baseline", f"of the baseline {_names(side_a)} changed, and its level moved", also)
    told = f", whose {_names(side_b)} changed" if side_b else ""
    return Blame("candidate", f"the ratio to the baseline on the same phone changed with the candidate{told}", also)


def of_level(key: Key, size: float, place: int, levels: Levels, before: Figure | None, after: Figure | None) -> Blame:
    """Blame a change of the level: of side A, or of the only side. `size`: in logarithms."""
    also = changed(before, after)
    device, others = _moved_with(key, size, place, levels)
    farm = bool(others) and sum(others) >= MOST * len(others)
    if farm and (not device or sum(device) >= MOST * len(device)):
        return Blame("farm", f"{sum(others)} of {len(others)} other devices moved too", also)
    if device and sum(device) >= MOST * len(device):
        told = f"{sum(device)} of {len(device)} other configurations of the device moved too"
        return Blame("device", f"{told}, {sum(others)} of {len(others)} other devices did", also)
    own = {**_own(before, after, "a"), **_own(before, after, "b")}
    if device and own and (after is None or after.b is None):
        still = f"{len(device) - sum(device)} of {len(device)} other configurations"
        told = f"{_names(own)} of this configuration changed, and {still}"
        return Blame("candidate", f"{told} of the device did not move", also)
    if not device:
        return Blame(
            "unknown", "the device has no other configuration to tell its heat and battery from the configuration", also
        )
    return Blame(
        "unknown", f"{len(device) - sum(device)} of {len(device)} other configurations of the device did not move", also
    )


def moved(values: np.ndarray, place: int) -> float | None:
    """Return how far a series of logarithms moved around a night; None where it has no figure on one side."""
    before = values[max(0, place - AROUND) : place]
    after = values[place : place + AROUND]
    before, after = before[~np.isnan(before)], after[~np.isnan(after)]
    return float(np.median(after) - np.median(before)) if len(before) and len(after) else None


def changed(before: Figure | None, after: Figure | None) -> Facts:
    """Provenance that is another one than in the night before, of either side."""
    if before is None or after is None:
        return {}
    return {**_differ(before.facts_a, after.facts_a), **_differ(before.facts_b, after.facts_b)}


def _moved_with(key: Key, size: float, place: int, levels: Levels) -> tuple[list[bool], list[bool]]:
    """Return for each other cell of the device, and each other device by its cells' median, whether it moved too."""
    device: list[bool] = []
    others: dict[str, list[float]] = {}
    for other, values in levels.items():
        if other == key or (other.metric, other.basis) != (key.metric, key.basis):
            continue
        by = moved(values, place)
        if by is None:
            continue
        if other.device == key.device:
            device.append(by / size >= ALIKE)
        else:
            others.setdefault(other.device, []).append(by / size)
    return device, [float(np.median(each)) >= ALIKE for each in others.values()]


def _own(before: Figure | None, after: Figure | None, side: str) -> Facts:
    if before is None or after is None:
        return {}
    found = _differ(getattr(before, f"facts_{side}"), getattr(after, f"facts_{side}"))
    return {name: each for name, each in found.items() if name in OF_A_SIDE}


def _differ(before: Mapping[str, str], after: Mapping[str, str]) -> Facts:
    return {name: (text, after[name]) for name, text in before.items() if name in after and after[name] != text}


def _names(found: Facts | Sequence[str]) -> str:
    return " and ".join(found)
