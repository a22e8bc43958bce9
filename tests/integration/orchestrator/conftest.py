"""A real Redis for each module, and a real PostgreSQL for all of them; emptied for each test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.config import Config
from redis import Redis
from sqlalchemy import Connection

from orchestrator.coordination import client as redis_client
from orchestrator.ledger import migrations, schema
from orchestrator.ledger.tables import SCHEMA_VERSION
from orchestrator.system.config import Settings
from tests.servers import RedisServer, private_postgres
from workers.spool import Spool

from . import ledgers


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
def farm(server: RedisServer, tmp_path: object) -> Settings:
    """Settings of a farm on the test's Redis."""
    return Settings(state=tmp_path, redis_url=server.url, host="lab", lease_ttl_s=60.0)


@pytest.fixture
def redis(server: RedisServer, farm: Settings) -> Iterator[Redis]:
    server.mend()
    client = redis_client.connect(farm)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(autouse=True)
def each_turn_says_why_jobs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler says it seldom on a machine with much other work, and a test reads it of one turn."""
    monkeypatch.setattr("orchestrator.scheduling.placer.FREE_S", math.inf)


@pytest.fixture
def spool(farm: Settings) -> Spool:
    return Spool(farm.state, "lab")


@pytest.fixture(scope="session")
def postgres_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with private_postgres(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture(scope="module")
def postgres(postgres_of_all: str) -> str:
    return ledgers.emptied(postgres_of_all)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty ledger's URL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'deep' / 'ledger.sqlite'}"
    return ledgers.emptied(request.getfixturevalue("postgres"))


NEXT = SCHEMA_VERSION + 1
SCRIPT = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision = "{NEXT}", "{SCHEMA_VERSION}"
def upgrade():
    op.add_column("jobs", sa.Column("note", sa.String(9), nullable=False, server_default="none"))
    op.execute("UPDATE counters SET value = {NEXT} WHERE name = 'schema'")
"""


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Installs a pocketfarm whose tables have one more column than this one's, with the script for it."""
    scripts = tmp_path / "versions"
    scripts.mkdir()
    (scripts / "next.py").write_text(SCRIPT)
    config_of = migrations.config_of

    def with_next(connection: Connection) -> Config:
        config = config_of(connection)
        ours = Path(migrations.__file__).parent / "versions"
        config.set_main_option("version_locations", f"{ours} {scripts}")
        config.set_main_option("path_separator", "space")
        return config

    def install() -> None:
        monkeypatch.setattr(migrations, "config_of", with_next)
        monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT)

    return install
