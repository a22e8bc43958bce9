"""A run of which nobody knows whether its agent started, because the way to the device went away just then."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.model.device import DeviceFacts, Source
from orchestrator.model.errors import AdbDown, DeviceSick, TransportLost
from workers.connection.base import ShellResult
from workers.connection.local import LocalConnection
from workers.devices.fleet import Member
from workers.engines.agent import Follower, start_agent
from workers.engines.pocketfarm.measure.run_request import RunRequest

AGENT = "/no/agent"


class Lossy(LocalConnection):
    """Loses what starts the agent, and answers again at once."""

    lost: TransportLost | None = None

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        if self.lost and commands[0][0] == AGENT:
            raise self.lost
        return super().shells(commands, deadline_s=deadline_s, guard=guard)


@pytest.mark.parametrize("lost", [AdbDown("the adb server went away"), TransportLost("connection lost")])
def test_the_device_is_not_blamed_for_a_lost_start(tmp_path: Path, lost: TransportLost) -> None:
    connection = Lossy("p", tmp_path)
    member = Member(connection, DeviceFacts(serial="p", host="h", kind="workstation", source=Source.WORKSTATION), AGENT)
    request = RunRequest(plan="", inputs={}, folder=str(tmp_path), marker="p/job/1", warmup=0, samples=1,
                         layer_passes=0, threads=1, power_period_ms=0, deadline_s=1.0, cache="")  # fmt: skip
    connection.lost = lost
    started = start_agent(member, request)
    with pytest.raises(TransportLost) as told:
        Follower(member, request, lambda: None, lambda _: None, started=started).follow()
    assert told.value is lost
    connection.lost = None
    with pytest.raises(DeviceSick, match="did not start"):
        start_agent(member, request)
