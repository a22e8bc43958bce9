"""Published figures that a report shows beside ours, with their source."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from orchestrator.model.base import Model


def _as_written(value: Any) -> Any:
    """YAML reads `52.7` as a number; a figure is quoted as it was printed."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Text = Annotated[str, BeforeValidator(_as_written, json_schema_input_type=float | str)]


class Published(Model):
    """A table of figures or findings from a publication."""

    source: str = Field(min_length=1)
    """Who published it, and when."""
    note: str = ""
    """What was measured there, and how it compares."""
    columns: tuple[str, ...] = Field(min_length=1)
    rows: tuple[tuple[Text, ...], ...] = Field(min_length=1)
    """One text for each column; empty where nothing was published."""

    @model_validator(mode="after")
    def _as_wide_as_its_head(self) -> Published:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} texts for {len(self.columns)} columns")
        return self
