"""The bytes of a record as a host sends them."""

from __future__ import annotations

from typing import Any

from orchestrator.coordination.record_stream import RECORD_BYTES
from orchestrator.model.errors import RecordTooLong
from orchestrator.model.record import Outcome, Record


def body_of(record: Record, most: int = RECORD_BYTES) -> str:
    """Return the record's text. One that is longer than the farm takes is the failure of its block, without its longest
    parts: it could never be stored, and its job would be tried again without end."""
    text = record.model_dump_json()
    if (size := len(text.encode())) <= most:
        return text
    parts: dict[str, Any] = {name: value for name, value in record if type(value) is tuple and value}
    longest = max(parts, key=lambda name: len(parts[name]))
    error = RecordTooLong(
        f"its record has {size >> 20} MiB, with {len(parts[longest])} {longest}; the farm takes {most >> 20} MiB",
        device=record.device.serial,
        remedy="shorten sampling.load, or take fewer samples; for a network this fast give a larger batch",
    )
    changed = {"outcome": Outcome.FAILED, "cause": error.cause, "reasons": (str(error),)}
    return record.model_copy(update={**dict.fromkeys(parts, ()), **changed}).model_dump_json()
