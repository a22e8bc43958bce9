"""The host's copy of changed settings, where the phone was told and switched in one trip."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.model.errors import DeviceSick, TransportLost
from orchestrator.model.experiment import Conditions
from workers.connection.ahead import Ahead
from workers.connection.base import ShellResult
from workers.session.conditions.awake import SAVED
from workers.session.saved_settings import SavedSettings

from .scripted import ScriptedPhone


class Phone(ScriptedPhone):
    """Loses the trip with a guard, if told."""

    lost = False

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        if self.lost and guard is not None:
            raise TransportLost("cut", device=self.serial)
        return super().shells(commands, deadline_s=deadline_s, guard=guard)


@pytest.fixture
def phone() -> Phone:
    return Phone({" ".join(command): "" for command in SAVED})


def test_a_lost_trip_may_have_switched(tmp_path: Path, phone: Phone) -> None:
    saved, phone.lost = SavedSettings(tmp_path, phone), True
    with pytest.raises(TransportLost):
        saved.prepare(Conditions())
    assert saved.changed == ("awake",)


def test_a_phone_that_takes_no_journal_was_not_switched(tmp_path: Path, phone: Phone) -> None:
    saved = SavedSettings(tmp_path, Ahead(phone))
    with pytest.raises(DeviceSick, match="mkdir"):
        saved.prepare(Conditions())
    assert saved.changed == () and not any("settings put" in each for each in phone.asked)
