"""Cells that are excluded, those of one reason in one row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.model.quantity import counted

from .names import few, label_head, label_options, without

if TYPE_CHECKING:
    from orchestrator.model.exclusion import Exclusion

SHOWN_LABELS = 4


class ExclusionGroup(NamedTuple):
    """Cells that are excluded on some devices for one reason."""

    cells: str
    devices: str
    reason: str


def group_exclusions(found: Iterable[Exclusion], known: Iterable[str] = ()) -> list[ExclusionGroup]:
    """Exclusions with the same reason on the same devices in one row; what all of them share is left out, unless a
    reason is about it.

    `known`: serials of all the devices that there are, which are not listed one by one.
    """
    listed = list(found)
    labels = {each.cell for each in listed}
    workloads = {each.workload for each in listed}
    word = f"{workloads.pop()} " if len(workloads) == 1 and all(each.workload for each in listed) else ""
    shared = set.intersection(*(set(label_options(label)) for label in labels)) if len(labels) > 1 else set()
    reasons = " ".join({each.reason for each in listed})
    options = frozenset(option for option in shared if option.partition("=")[0] not in reasons)
    everywhere = {each.serial for each in listed if each.serial} | set(known)
    devices: dict[tuple[str, str], dict[str, None]] = {}
    for each in listed:
        name = without(each.cell.removeprefix(word), options)
        devices.setdefault((name, each.reason), {})[each.serial] = None
    cells: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (label, reason), serials in devices.items():
        cells.setdefault((reason, tuple(serials)), []).append(label)
    return [
        ExclusionGroup(_cell_names(labels), _device_names(serials, everywhere), reason)
        for (reason, serials), labels in cells.items()
    ]


def _cell_names(labels: Sequence[str]) -> str:
    """A few labels as they are; of many their number, and what they have in common."""
    if len(labels) <= SHOWN_LABELS:
        return "; ".join(labels)
    words = [[*label_head(label).split(" "), *label_options(label)] for label in labels]
    common = [word for word in words[0] if all(word in others for others in words)]
    return counted(len(labels), "configuration") + (f" with {' '.join(common)}" if common else "")


def _device_names(serials: Sequence[str], known: Collection[str]) -> str:
    """An empty serial stands for every device."""
    if "" in serials or (len(known) > 1 and set(serials) >= set(known)):
        return "every device"
    return few(serials)
