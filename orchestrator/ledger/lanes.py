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
    known = select(LANES.c.digest, LANES.c.id).where(LANES.c.experiment_id == experiment_id)
    numbers = {digest: int(number) for digest, number in connection.execute(known)}
    found = {}
    for choice in dict.fromkeys(choices):
        text = json.dumps(choice)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in numbers:
            lane = {"digest": digest, "candidates": text, "candidate_count": len(choice)}
            statement = insert(LANES).values(experiment_id=experiment_id, **lane).returning(LANES.c.id)
            numbers[digest] = number = int(connection.execute(statement).scalar_one())
            devices = [{"lane_id": number, "serial": serial} for serial in dict.fromkeys(choice)]
            connection.execute(insert(LANE_DEVICES), devices)
        found[choice] = numbers[digest]
    return found


def candidates_of(text: str) -> tuple[str, ...]:
    """The devices of a lane, from its column."""
    return tuple(json.loads(text))
