"""The times that a host tells of an attempt, within those that the farm knows: from when it gave it until it has the
record."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection
from datetime import UTC, datetime

from sqlalchemy import BindParameter, Connection, bindparam, select

from orchestrator.ledger.database import padded
from orchestrator.ledger.tables import ATTEMPTS
from orchestrator.model.record import Doubt, DoubtCode, Record

SLACK_S = 60.0
"""Clocks that differ by less are believed."""
LATEST = 253_402_300_800.0
"""The end of the year 9999, Unix time."""
_THESE: BindParameter[str] = bindparam("these", expanding=True)
_BEGAN = select(ATTEMPTS.c.job_id, ATTEMPTS.c.attempt, ATTEMPTS.c.started_at).where(ATTEMPTS.c.job_id.in_(_THESE))


def began(connection: Connection, job_ids: Collection[str]) -> dict[tuple[str, int], float]:
    """Return when each attempt at these jobs was begun, by the farm's clock."""
    rows = connection.execute(_BEGAN, {"these": padded(job_ids)}) if job_ids else ()
    return {(row.job_id, row.attempt): float(row.started_at) for row in rows}


def believed(record: Record, body: bytes, begun_at: float) -> tuple[Record, bytes]:
    """Return a record and its JSON with times that can be: those of its host, unless by the farm's clock they lie
    before its attempt or have not come yet. Then they are moved there, and a doubt says what the host said."""
    ahead_s, now = record.clock_ahead_s or 0.0, time.time()
    began_at, ended_at = record.started_at + ahead_s, record.ended_at + ahead_s
    if begun_at - SLACK_S <= began_at <= ended_at + SLACK_S and ended_at <= now + SLACK_S:
        return record, body
    end = max(begun_at, min(now, ended_at if math.isfinite(ended_at) else now))
    start = max(begun_at, min(end, began_at if math.isfinite(began_at) else begun_at))
    said = f"its host told {_shown(began_at)} to {_shown(ended_at)}; the farm gave it at {_shown(begun_at)}"
    doubt = Doubt(code=DoubtCode.HOST_CLOCK, detail=f"{said}, and had the record by {_shown(now)}")
    times = {"started_at": start, "ended_at": end, "clock_ahead_s": 0.0}
    moved = record.model_copy(update={**times, "doubts": (*record.doubts, doubt)})
    told = json.loads(body)
    told |= {**times, "doubts": [*told.get("doubts", ()), doubt.model_dump(mode="json")]}
    return moved, json.dumps(told, separators=(",", ":")).encode()


def _shown(unix_s: float) -> str:
    if not 0.0 <= unix_s < LATEST:
        return f"{unix_s:g} s"
    return datetime.fromtimestamp(unix_s, UTC).isoformat(sep=" ", timespec="seconds")
