"""Take an archive in: experiments that the ledger lacks, and raw records that were deleted from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from orchestrator.figures import BlockFigures
from orchestrator.ledger.attempts import record_columns
from orchestrator.ledger.database import Database, count_up
from orchestrator.ledger.experiments import is_there
from orchestrator.ledger.figures import packing
from orchestrator.ledger.incoming.pieces import Pieces, coming, pieces
from orchestrator.ledger.packed import pack_json
from orchestrator.ledger.queue import lanes
from orchestrator.ledger.records import stored
from orchestrator.ledger.tables import ATTEMPTS, COUNTERS, EXPERIMENTS, FIGURES, JOBS, RECORDS, TEMPLATES
from orchestrator.model.errors import SetupError

from .reading import head_of, rows_of

COLUMNS = ("experiment_id", "job_id", "attempt", "job_row", "attempt_row", "figures_row", "figures", "record")


@dataclass(frozen=True)
class Adopted:
    """The content that an archive brought."""

    experiments: tuple[str, ...]
    """The experiments that were not there."""
    records: int
    """Raw records that the ledger has again."""


def adopt(database: Database, file: Path) -> Adopted:
    """No experiment comes but all of the file do. Raises SetupError where it is no archive or is damaged."""
    head = head_of(file)
    with database.read() as connection:
        there = {each["id"] for each in head["experiments"] if is_there(connection, each["id"])}
    given = _tokens_of(file, {each["id"] for each in head["experiments"]} - there)
    with pieces(database) as into:
        lacking = [each for each in head["experiments"] if not is_there(into.connection, each["id"])]
        made = {each["id"]: _Experiment(into, each) for each in lacking}
        tokens = _Tokens(into.connection, given)
        records = 0
        for job_id, rows in groupby(rows_of(file, COLUMNS), itemgetter("job_id")):
            try:
                for row in rows:
                    target = made.get(row["experiment_id"])
                    records += _fill(into.connection, row) if target is None else target.take(row, tokens)
            except (ValueError, KeyError, TypeError) as e:
                raise SetupError(f"{file}: {job_id} cannot be read: {e}", remedy="take another copy") from e
            into.came([] if target is None else [job_id])
    return Adopted(tuple(made), records)


def _tokens_of(file: Path, experiments: set[str]) -> list[int]:
    """Return those of these experiments, as the file has them."""
    rows = rows_of(file, ("experiment_id", "attempt_row")) if experiments else iter(())
    mine = (row["attempt_row"] for row in rows if row["experiment_id"] in experiments and row["attempt_row"])
    return [int(json.loads(row)["token"]) for row in mine]


def _fill(connection: Connection, row: dict[str, Any]) -> int:
    """Give a record its body again, where that was deleted."""
    if row["record"] is None:
        return 0
    mine = (RECORDS.c.job_id == row["job_id"]) & (RECORDS.c.attempt == row["attempt"])
    bare = update(RECORDS).where(mine, func.length(RECORDS.c.body) == 0)
    return connection.execute(bare.values(body=pack_json(row["record"].encode()))).rowcount


class _Tokens:
    """The tokens of the archive, where this ledger handed them out and has them no more; else new ones for all."""

    def __init__(self, connection: Connection, tokens: Sequence[int]) -> None:
        newest = int(connection.scalar(select(COUNTERS.c.value).where(COUNTERS.c.name == "token")) or 0)
        own = max(tokens, default=0) <= newest and not _taken(connection, tokens)
        first = 0 if own or not tokens else count_up(connection, "token", len(tokens)) - len(tokens) + 1
        self._new = {token: token if own else first + index for index, token in enumerate(sorted(tokens))}

    def of(self, token: int) -> int:
        return self._new.get(token, token)


def _taken(connection: Connection, tokens: Sequence[int]) -> bool:
    parts = (tokens[start : start + 500] for start in range(0, len(tokens), 500))
    return any(connection.scalar(select(ATTEMPTS.c.token).where(ATTEMPTS.c.token.in_(part)).limit(1)) for part in parts)


class _Experiment:
    """One that is taken in: its rows as they were, under numbers of this ledger."""

    def __init__(self, into: Pieces, head: dict[str, Any]) -> None:
        self._into, connection = into, into.connection
        free = connection.scalar(select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.sequence == head["sequence"])) is None
        newest = int(connection.scalar(select(COUNTERS.c.value).where(COUNTERS.c.name == "experiment")) or 0)
        mine = free and head["sequence"] <= newest and head["sequence"] not in coming(connection)
        self._number = head["sequence"] if mine else count_up(connection, "experiment")
        own = {name: head[name] for name in ("id", "spec", "exclusions", "submitted_at", "served_at")}
        own["submitted_by"] = head.get("submitted_by", "")  # older archives have none
        into.add({"sequence": self._number, **own})
        self._templates = {digest: self._template(digest, each) for digest, each in head["templates"].items()}
        self._lanes: dict[str, int] = {}
        self._seen = ""

    def _template(self, digest: str, each: dict[str, str]) -> int:
        if hashlib.sha256(each["body"].encode()).hexdigest() != digest:
            raise ValueError(f"template {digest} is not what its hash says")
        values = {"cell_id": each["cell_id"], "label": each["label"], "body": pack_json(each["body"].encode())}
        made = insert(TEMPLATES).values(experiment=self._number, digest=digest, **values)
        return int(self._into.connection.execute(made.returning(TEMPLATES.c.id)).scalar_one())

    def take(self, row: dict[str, Any], tokens: _Tokens) -> int:
        """A row of the file; how many raw records it brought."""
        if row["job_id"] != self._seen:
            self._job(row["job_id"], json.loads(row["job_row"]), tokens)
        if row["attempt_row"] is None:
            return 0
        attempt = json.loads(row["attempt_row"])
        attempt["token"] = tokens.of(attempt["token"])
        self._into.connection.execute(insert(ATTEMPTS).values(job_id=row["job_id"], **attempt))
        if row["figures_row"] is not None:
            self._figures(row)
        return self._record(row, attempt["token"]) if row["record"] is not None else 0

    def _job(self, job_id: str, own: dict[str, Any], tokens: _Tokens) -> None:
        self._seen = job_id
        choice = own.pop("candidates")
        if choice not in self._lanes:
            (self._lanes[choice],) = lanes.numbers_of(
                self._into.connection, self._number, [lanes.candidates_of(choice)]
            )
        places = {"template_id": self._templates[own.pop("template")], "lane_id": self._lanes[choice]}
        own["token"] = tokens.of(own["token"])
        self._into.connection.execute(insert(JOBS).values(id=job_id, experiment=self._number, **places, **own))

    def _figures(self, row: dict[str, Any]) -> None:
        own, parts = json.loads(row["figures_row"]), dict[str, Any]()
        if row["figures"] is not None:
            parts = packing.parts(BlockFigures.model_validate_json(row["figures"]))
        self._into.connection.execute(insert(FIGURES).values(job_id=row["job_id"], **own, **parts))

    def _record(self, row: dict[str, Any], token: int) -> int:
        text = row["record"].encode()
        record = stored(pack_json(text))
        if record.token != token:
            record = record.model_copy(update={"token": token})
            text = record.model_dump_json().encode()
        self._into.connection.execute(insert(RECORDS).values(**{**record_columns(record), "body": pack_json(text)}))
        return 1
