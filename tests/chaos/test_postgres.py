"""A farm on PostgreSQL, which is killed in the middle of a run: what users type does not change, and no job is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.ledger import Ledger
from tests.servers import postgres_server
from tests.waiting import eventually

from .running_farm import running_farm

pytestmark = [pytest.mark.slow]
JOBS = 2
"""One runs and one waits when the ledger dies: until then the phone is slow."""


def test_a_killed_postgres_costs_time_alone(tmp_path: Path) -> None:
    with (
        postgres_server(tmp_path / "postgres") as server,
        running_farm(tmp_path / "farm" / "state", phones=1, more={"FARM_LEDGER_URL": server.url}) as farm,
    ):
        farm.forget("FARM_LEDGER_URL")  # another terminal knows the state folder alone
        farm.brake(0.1)
        experiments = [farm.submit(tmp_path, f"e{number}", samples=300) for number in range(JOBS)]
        assert not (farm.state / "ledger.sqlite").exists()
        eventually(farm.running, what="nothing measures")
        server.stop(kill=True)
        farm.brake(1.0)
        status = farm.cli("status", status=1)
        assert status["error"]["cause"] == "service_down", status
        server.start()
        for experiment in experiments:
            ended = farm.cli("watch", experiment, "--timeout", "90 s", status=None)
            assert ended["outcomes"]["ok"] + ended["outcomes"]["invalid"] == 1, ended
        with Ledger(server.url) as ledger:
            for experiment in experiments:
                good = [each for each in ledger.records(experiment) if each.outcome in ("ok", "invalid")]
                assert len(good) == 1, good
