"""Names of cells, devices and drivers, without what is true of all of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from orchestrator.analysis.statistics import Summary

SHOWN_NAMES = 4
_OPTION = re.compile(r" (?=[a-z_]+=)")
"""The blank before each option of a label; values may have spaces."""


class Naming(NamedTuple):
    """The parts that the names of an experiment's cells need not say, because they are true of all."""

    workload: bool
    """True if names must say the workload: there are several."""
    shared: frozenset[str]
    """Options with their values, as they stand in a label."""


class Labelled(Protocol):
    """A thing with the name of a cell."""

    @property
    def label(self) -> str: ...

    @property
    def workload(self) -> str: ...


def naming(of: Iterable[Labelled]) -> Naming:
    found = list(of)
    options = [set(label_options(label)) for label in {summary.label for summary in found}]
    shared = set.intersection(*options) if len(options) > 1 else set()
    return Naming(len({summary.workload for summary in found}) > 1, frozenset(shared))


def cell(summary: Labelled, how: Naming) -> str:
    """`opencl fp32 granularity=4`, after the workload's name where there are several of them."""
    label = summary.label if how.workload else summary.label.removeprefix(summary.workload + " ")
    return without(label, how.shared)


def label_options(label: str) -> list[str]:
    """`["granularity=4", "product=blocked 16x32"]` of a cell's label."""
    return _OPTION.split(label)[1:]


def label_head(label: str) -> str:
    """Return what stands before the options of a label: workload, backend, precision."""
    return _OPTION.split(label)[0]


def without(label: str, shared: Collection[str]) -> str:
    """A label without these options."""
    head, *options = _OPTION.split(label)
    return " ".join([head, *(option for option in options if option not in shared)])


def few(names: Sequence[str]) -> str:
    """`A, B, C, D and 2 more`."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def short_name(text: str) -> str:
    """A driver's name for a device without what says nothing: trade marks, clock, `Processor`."""
    text = re.sub(r"^(pthread|basic|cpu)-[a-z0-9.-]+?-(?=[A-Z])", "", text)  # PoCL puts LLVM's name before the maker's
    text = re.sub(r"\((R|TM|C)\)|\bProcessor\b|\bCPU\b|@ [\d.]+ ?GHz|\+debian\b", " ", text, flags=re.IGNORECASE)
    text = re.sub(r"^pocketfarm-agent [\d.]+", "agent", text)
    return " ".join(text.replace("Portable Computing Language", "PoCL").split())


def sample(summaries: Iterable[Summary], ending: str = "") -> str:
    """Return what a sample of these results is, everywhere: `inference`, `answer`, `epoch`; several by `or`."""
    return " or ".join(dict.fromkeys(f"{each.sample}{ending}" for each in summaries)) or f"sample{ending}"
