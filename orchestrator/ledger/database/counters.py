"""Counters of the ledger, of which no value is ever given twice."""

from __future__ import annotations

import logging

from sqlalchemy import BigInteger, Connection, bindparam, case, func, literal, select, update

from orchestrator.ledger.tables import ATTEMPTS, COUNTERS, EXPERIMENTS, JOBS, LANES, RECORDS
from orchestrator.model.live.lease import LARGEST_TOKEN

log = logging.getLogger(__name__)
JUMP = 10_000_000
"""The numbers that a lost counter skips beyond the newest value that is known: some may have gone to records that
have not come yet."""
_IS_IT = COUNTERS.c.name == bindparam("name_")
_COUNTED = update(COUNTERS).where(_IS_IT).values(value=COUNTERS.c.value + bindparam("by")).returning(COUNTERS.c.value)
_COUNTED_ON = _COUNTED.where(COUNTERS.c.value.between(0, literal(LARGEST_TOKEN + JUMP, BigInteger)))
_HELD_IN = {
    "token": (ATTEMPTS.c.token, JOBS.c.token, RECORDS.c.token),
    "experiment": (EXPERIMENTS.c.sequence, JOBS.c.experiment, LANES.c.experiment),
    "change": (ATTEMPTS.c.changed, LANES.c.changed),
}
"""The columns that hold a counter's values."""


def count_up(connection: Connection, name: str, by: int = 1) -> int:
    """The next value of a counter, in the caller's transaction: no value is ever given twice, nor those between."""
    asked = {"name_": name, "by": by}
    found = connection.execute(_COUNTED_ON, asked).scalar_one_or_none()
    if found is None:
        jump(connection, name)
        found = connection.execute(_COUNTED, asked).scalar_one()
    return int(found)


def jump(connection: Connection, name: str, beyond: int = 0) -> None:
    """Let a counter that was lost, or is behind what rows hold or behind `beyond`, go on far beyond; another stays."""
    most = literal(LARGEST_TOKEN, BigInteger)
    newest = (func.coalesce(func.max(case((held.between(0, most), held))), 0) for held in _HELD_IN[name])
    known = max(beyond if beyond <= LARGEST_TOKEN else 0, *(connection.scalar(select(each)) or 0 for each in newest))
    is_lost = ~COUNTERS.c.value.between(literal(known, BigInteger), literal(LARGEST_TOKEN + JUMP, BigInteger))
    if connection.execute(update(COUNTERS).where(_IS_IT, is_lost).values(value=known + JUMP), {"name_": name}).rowcount:
        log.error("event=counter_lost name=%s: it goes on from %d", name, known + JUMP)
