"""Lanes: choices of devices within an experiment. A job's row holds its lane's number, not the list of its devices."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field, TypeAdapter
from sqlalchemy import BindParameter, Connection, bindparam, insert, select

from orchestrator.ledger.database import parts
from orchestrator.ledger.packed import readable
from orchestrator.ledger.tables import CHOICE_DEVICES, CHOICES, LANES

_CANDIDATES_TEXT: TypeAdapter[tuple[str, ...]] = TypeAdapter(Annotated[tuple[str, ...], Field(min_length=1)])
_THESE: BindParameter[int] = bindparam("these", expanding=True)
_CHOICE_OF = select(LANES.c.id, LANES.c.choice_id).where(LANES.c.id.in_(_THESE))
_CANDIDATES = select(CHOICES.c.id, CHOICES.c.candidates).where(CHOICES.c.id.in_(_THESE))


def numbers_of(connection: Connection, experiment: int, choices: Sequence[tuple[str, ...]]) -> list[int]:
    """The number of the lane of each choice of devices; lanes that are not there yet are made."""
    numbers = _choices(connection, choices)
    known = select(LANES.c.choice_id, LANES.c.id).where(LANES.c.experiment == experiment)
    lanes: dict[int, int] = {row.choice_id: row.id for row in connection.execute(known)}
    if new := [{"choice_id": number} for number in dict.fromkeys(numbers) if number not in lanes]:
        made = insert(LANES).values(experiment=experiment).returning(LANES.c.choice_id, LANES.c.id)
        lanes |= {row.choice_id: row.id for row in connection.execute(made, new)}
    return [lanes[number] for number in numbers]


def _choices(connection: Connection, choices: Sequence[tuple[str, ...]]) -> list[int]:
    texts = [json.dumps(choice) for choice in choices]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    numbers = _known(connection, digests)
    new = {
        digest: {"digest": digest, "candidates": text, "candidate_count": len(choice)}
        for digest, text, choice in zip(digests, texts, choices, strict=True)
        if digest not in numbers
    }
    if new:
        made = insert(CHOICES).returning(CHOICES.c.digest, CHOICES.c.id)
        numbers |= {row.digest: row.id for row in connection.execute(made, list(new.values()))}
        devices = [
            {"choice_id": numbers[digest], "serial": serial}
            for digest, row in new.items()
            for serial in dict.fromkeys(candidates_of(str(row["candidates"])))
        ]
        connection.execute(insert(CHOICE_DEVICES), devices)
    return [numbers[digest] for digest in digests]


def _known(connection: Connection, digests: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts(digests):
        asked = select(CHOICES.c.digest, CHOICES.c.id).where(CHOICES.c.digest.in_(part))
        found |= {row.digest: row.id for row in connection.execute(asked)}
    return found


def devices_of(connection: Connection, lanes: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Lane -> its devices, none where they cannot be read; lanes with the same choice share one."""
    choice_of: dict[int, int] = {}
    for part in parts(lanes):
        rows = connection.execute(_CHOICE_OF, {"these": part})
        choice_of |= {row.id: row.choice_id for row in rows}
    choices = choices_of(connection, set(choice_of.values()))
    return {lane: choices[choice_of[lane]] if lane in choice_of else () for lane in lanes}


def choices_of(connection: Connection, wanted: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Choice -> its devices; none where that cannot be read."""
    found: dict[int, tuple[str, ...]] = dict.fromkeys(wanted, ())
    for part in parts(wanted):
        rows = connection.execute(_CANDIDATES, {"these": part})
        found |= {row.id: known_candidates(row.id, row.candidates) for row in rows}
    return found


def known_candidates(choice: int, text: str) -> tuple[str, ...]:
    """The devices of a choice, from its column; none, logged, where that cannot be read."""
    return readable(f"choice {choice} of devices", partial(candidates_of, text)) or ()


def candidates_of(text: str) -> tuple[str, ...]:
    """The devices of a choice, from its column. Raises ValueError."""
    return _CANDIDATES_TEXT.validate_json(text, strict=True)
