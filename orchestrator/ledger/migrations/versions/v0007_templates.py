"""Keep what the blocks of a cell have in common once, and a choice of devices once for all experiments."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"

_BATCH = 500
_KEPT = "id, sequence, block, priority, state, outcome, cause, attempts, failures, token, not_before, ended_at"


def upgrade() -> None:
    """Take the jobs apart. Whatever refers to a job goes on to refer to it."""
    connection = op.get_bind()
    op.rename_table("lanes", "lanes_6")
    op.drop_table("lane_devices")
    _make_parts()
    lanes = _fill_lanes(connection)
    _fill_parts(connection, lanes)
    _replace_jobs(connection)
    for name in ("job_parts", "lanes_6"):
        op.drop_table(name)
    op.execute("UPDATE counters SET value = 7 WHERE name = 'schema'")


def _make_parts() -> None:
    op.create_table(
        "choices",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("candidates", sa.Text, nullable=False),
        sa.Column("candidate_count", sa.Integer, nullable=False),
    )
    op.create_table(
        "choice_devices",
        sa.Column("choice_id", sa.Integer, sa.ForeignKey("choices.id"), primary_key=True),
        sa.Column("serial", sa.String(200), primary_key=True),
    )
    op.create_index("choices_of_device", "choice_devices", ["serial", "choice_id"])
    op.create_table(
        "lanes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.sequence"), nullable=False),
        sa.Column("choice_id", sa.Integer, sa.ForeignKey("choices.id"), nullable=False),
        sa.UniqueConstraint("experiment", "choice_id", name="lanes_by_choice"),
    )
    op.create_table(
        "templates",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.sequence"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("cell_id", sa.String(32), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("experiment", "digest", name="templates_by_content"),
    )
    op.create_table(
        "job_parts",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("experiment", sa.Integer, nullable=False),
        sa.Column("template_id", sa.Integer, nullable=False),
        sa.Column("lane_id", sa.Integer, nullable=False),
    )


def _add(connection: sa.Connection, table: str, row: dict[str, Any]) -> int:
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    statement = sa.text(f"INSERT INTO {table} ({names}) VALUES ({values}) RETURNING id")  # noqa: S608
    return int(connection.execute(statement, row).scalar_one())


def _fill_lanes(connection: sa.Connection) -> dict[int, int]:
    """Old number of a lane -> its new one."""
    numbers = {row.id: row.sequence for row in connection.execute(sa.text("SELECT id, sequence FROM experiments"))}
    choices: dict[str, int] = {}
    lanes: dict[int, int] = {}
    for row in connection.execute(sa.text("SELECT * FROM lanes_6 ORDER BY id")).all():
        if row.digest not in choices:
            choice = {name: getattr(row, name) for name in ("digest", "candidates", "candidate_count")}
            choices[row.digest] = number = _add(connection, "choices", choice)
            devices = [{"choice_id": number, "serial": each} for each in dict.fromkeys(json.loads(row.candidates))]
            insert = sa.text("INSERT INTO choice_devices (choice_id, serial) VALUES (:choice_id, :serial)")
            connection.execute(insert, devices)
        lane = {"experiment": numbers[row.experiment_id], "choice_id": choices[row.digest]}
        lanes[row.id] = _add(connection, "lanes", lane)
    return lanes


def _fill_parts(connection: sa.Connection, lanes: dict[int, int]) -> None:
    templates: dict[tuple[int, str], int] = {}
    for batch in _old_jobs(connection):
        parts = []
        for row in batch:
            body = _common(row.body)
            digest = hashlib.sha256(body).hexdigest()
            key = (row.experiment_sequence, digest)
            if key not in templates:
                named = {"cell_id": row.cell_id, "label": row.label.removesuffix(f" #{row.block}")}
                content = {"experiment": row.experiment_sequence, "digest": digest, "body": body}
                templates[key] = _add(connection, "templates", content | named)
            lane = {"template_id": templates[key], "lane_id": lanes[row.lane_id]}
            parts.append({"id": row.id, "experiment": row.experiment_sequence} | lane)
        insert = "INSERT INTO job_parts (id, experiment, template_id, lane_id) "
        connection.execute(sa.text(insert + "VALUES (:id, :experiment, :template_id, :lane_id)"), parts)


def _old_jobs(connection: sa.Connection) -> Iterator[list[Any]]:
    after = ""
    columns = "id, experiment_sequence, cell_id, block, label, body, lane_id"
    statement = sa.text(f"SELECT {columns} FROM jobs WHERE id > :after ORDER BY id LIMIT {_BATCH}")  # noqa: S608
    while rows := list(connection.execute(statement, {"after": after}).all()):
        yield rows
        after = rows[-1].id


def _common(body: bytes) -> bytes:
    """A packed job without its block and its candidates; one that cannot be read stays as it is."""
    try:
        found = json.loads(zlib.decompress(body))
        del found["block"], found["candidates"]
    except (ValueError, TypeError, LookupError, zlib.error):
        return bytes(body)
    return zlib.compress(json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode(), 6)


def _replace_jobs(connection: sa.Connection) -> None:
    """Make the table anew. SQLite counts what refers to rows that are away, and finds them again before the commit."""
    op.execute(f"CREATE TABLE jobs_6 AS SELECT {_KEPT} FROM jobs")  # noqa: S608
    is_sqlite = connection.dialect.name == "sqlite"
    referring = [] if is_sqlite else _referring(connection)
    if is_sqlite:
        op.execute("PRAGMA defer_foreign_keys = ON")
    for table, name, _ in referring:
        op.drop_constraint(name, table)
    op.drop_table("jobs")
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("experiment", sa.Integer, sa.ForeignKey("experiments.sequence"), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("template_id", sa.Integer, sa.ForeignKey("templates.id"), nullable=False),
        sa.Column("lane_id", sa.Integer, sa.ForeignKey("lanes.id"), nullable=False),
        sa.Column("block", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("cause", sa.String(40), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
    )
    kept = ", ".join(f"jobs_6.{name}" for name in _KEPT.split(", "))
    op.execute(
        f"INSERT INTO jobs ({_KEPT}, experiment, template_id, lane_id) "  # noqa: S608
        f"SELECT {kept}, job_parts.experiment, job_parts.template_id, job_parts.lane_id "
        "FROM jobs_6 JOIN job_parts ON job_parts.id = jobs_6.id ORDER BY job_parts.experiment, jobs_6.sequence"
    )
    op.create_index("jobs_in_turn", "jobs", ["state", "lane_id", "sequence"])
    op.create_index("jobs_by_experiment", "jobs", ["experiment", "state"])
    for table, name, columns in referring:
        op.create_foreign_key(name, table, "jobs", columns, ["id"])
    op.drop_table("jobs_6")


def _referring(connection: sa.Connection) -> list[tuple[str, str, list[str]]]:
    """Tables that refer to jobs, the names of these constraints, and their columns."""
    inspector = sa.inspect(connection)
    return [
        (table, str(key["name"]), key["constrained_columns"])
        for table in inspector.get_table_names()
        for key in inspector.get_foreign_keys(table)
        if key["referred_table"] == "jobs"
    ]
