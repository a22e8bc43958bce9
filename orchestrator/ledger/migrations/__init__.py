"""Bring the tables of an older pocketfarm to this version: Alembic's scripts, one a version, in `versions/`."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection, to: str = "head", *, holds: str = "") -> None:
    """Run the scripts up to a revision, in the caller's transaction.

    `holds`: the revision of tables that were made before Alembic kept it in the database.
    """
    config = config_of(connection)
    if holds:
        command.stamp(config, holds)
    command.upgrade(config, to)


def config_of(connection: Connection) -> Config:
    """Alembic's configuration for a connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config
