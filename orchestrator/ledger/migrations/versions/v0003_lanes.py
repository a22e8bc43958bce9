"""Name the devices that may run a job once, as a lane, instead of in every job's row."""

from __future__ import annotations

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Make the lanes of the jobs that are there; a job's row then holds its lane's number."""
    lanes = op.create_table(
        "lanes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("experiment_id", sa.String(100), sa.ForeignKey("experiments.id"), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("candidates", sa.Text, nullable=False),
        sa.Column("candidate_count", sa.Integer, nullable=False),
        sa.UniqueConstraint("experiment_id", "digest", name="lanes_by_devices"),
    )
    devices = op.create_table(
        "lane_devices",
        sa.Column("lane_id", sa.Integer, sa.ForeignKey("lanes.id"), primary_key=True),
        sa.Column("serial", sa.String(200), primary_key=True),
    )
    op.create_index("lanes_of_device", "lane_devices", ["serial", "lane_id"])
    op.execute("ALTER TABLE jobs ADD COLUMN lane_id INTEGER REFERENCES lanes (id)")
    connection = op.get_bind()
    found = connection.execute(sa.text("SELECT DISTINCT experiment_id, candidates, candidate_count FROM jobs"))
    for experiment, candidates, count in found.all():
        digest = hashlib.sha256(candidates.encode()).hexdigest()
        row = {"experiment_id": experiment, "digest": digest, "candidates": candidates, "candidate_count": count}
        number = connection.execute(sa.insert(lanes).values(row).returning(lanes.c.id)).scalar_one()
        serials = dict.fromkeys(json.loads(candidates))
        connection.execute(sa.insert(devices), [{"lane_id": number, "serial": serial} for serial in serials])
    op.execute(
        "UPDATE jobs SET lane_id = (SELECT lanes.id FROM lanes WHERE lanes.experiment_id = jobs.experiment_id "
        "AND lanes.candidates = jobs.candidates)"
    )
    op.drop_index("jobs_in_turn", "jobs")
    op.drop_column("jobs", "candidates")
    op.drop_column("jobs", "candidate_count")
    op.create_index("jobs_in_turn", "jobs", ["state", "lane_id", "sequence", "not_before", "id"])
    op.execute("UPDATE counters SET value = 3 WHERE name = 'schema'")
