"""Which jobs follow from the results of others, where that is more than the matrix and its blocks."""

from __future__ import annotations

from pydantic import Field

from orchestrator.model.base import Model


class StrategyChoice(Model):
    """A strategy of your own."""

    file: str
    """A Python file with a class `Strategy`, relative to the experiment file. It is code that runs with the scheduler's
    rights."""
    file_sha256: str | None = None
    """Filled in at submission."""
    options: dict[str, int | float | str | bool] = Field(default_factory=dict)
    """Keywords of its class."""
