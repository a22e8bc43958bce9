"""Lanes: choices of devices within an experiment. A job's row holds its lane's number, not the list of its devices."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from sqlalchemy import Connection, insert, select

from .tables import LANE_DEVICES, LANES


def numbers_of(
    connection: Connection, experiment_id: str, choices: Iterable[tuple[str, ...]]
) -> dict[tuple[str, ...], int]:
    """Choice of devices -> number of its lane; lanes that are not there yet are made."""
    digests = {choice: _digest(choice) for choice in choices}
    known = select(LANES.c.digest, LANES.c.id).where(LANES.c.experiment_id == experiment_id)
    numbers: dict[str, int] = {row.digest: row.id for row in connection.execute(known)}
    new = {digest: choice for choice, digest in digests.items() if digest not in numbers}
    if new:
        rows = [
            {"digest": digest, "candidates": json.dumps(choice), "candidate_count": len(choice)}
            for digest, choice in new.items()
        ]
        made = insert(LANES).values(experiment_id=experiment_id).returning(LANES.c.digest, LANES.c.id)
        numbers |= {row.digest: row.id for row in connection.execute(made, rows)}
        devices = [
            {"lane_id": numbers[digest], "serial": serial}
            for digest, choice in new.items()
            for serial in dict.fromkeys(choice)
        ]
        connection.execute(insert(LANE_DEVICES), devices)
    return {choice: numbers[digest] for choice, digest in digests.items()}


def _digest(choice: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(choice).encode()).hexdigest()


def candidates_of(text: str) -> tuple[str, ...]:
    """The devices of a lane, from its column."""
    return tuple(json.loads(text))
