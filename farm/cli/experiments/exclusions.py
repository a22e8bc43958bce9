"""Print the cells that an experiment excludes, and why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.markup import escape
from rich.padding import Padding

from orchestrator.report import wording

if TYPE_CHECKING:
    from orchestrator.model.exclusion import Exclusion


def exclusion_lines(exclusions: Iterable[Exclusion], known: Iterable[str] = (), limit: int = 12) -> list[str]:
    """One line per reason. `known`: serials of the experiment's devices."""
    groups = wording.group_exclusions(exclusions, known)
    lines = [f"{group.cells} on {group.devices}: {group.reason}" for group in groups]
    return lines if len(lines) <= limit else [*lines[:limit], f"... {len(lines) - limit} more: farm status says all"]


def exclusion_line(line: str) -> RenderableType:
    """A line as it is printed below its experiment."""
    return Padding(f"[yellow]excluded[/] {escape(line)}", (0, 0, 0, 2), expand=False)
