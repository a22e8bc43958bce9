"""Results as JSON, for programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.model.record import Record

from .content import Content
from .parts.training import newest

EACH_CHANGE: Any = {"__all__": {"rows": {"__all__": {"comparison": {"changed"}}}}}
"""There may be as many as examples; `farm agreement --json` has them."""


def as_data(content: Content, records: Iterable[Record] | None = None) -> dict[str, Any]:
    """The report as plain data; with `records` these too, in full: all samples, events and provenance."""
    data = content.model_dump(mode="json", exclude={"blocks": True, "agreements": EACH_CHANGE})
    named = {"experiment": data.pop("experiment_id"), "spec": data.pop("experiment"), **data}
    named["trained"] = [
        {"serial": block.serial, "cell_id": block.cell_id, **trained.model_dump(mode="json")}
        for block, trained in newest(content.blocks)
    ]
    if records is not None:
        named["records"] = [record.model_dump(mode="json") for record in records]
    return named
