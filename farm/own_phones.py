"""The phones of this machine, as acts change them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from orchestrator.acts import PutBack
from orchestrator.config import Settings


@dataclass(frozen=True)
class OwnPhones:
    """`orchestrator.acts.Phones` over this machine's adb server and journals."""

    settings: Settings

    def left_behind(self) -> Sequence[str]:
        from workers.crash_recovery import left_behind

        return left_behind(self.settings.state)

    def restore(self, serials: Iterable[str]) -> Sequence[PutBack]:
        from workers.crash_recovery import restore_devices

        return [PutBack(**asdict(each)) for each in restore_devices(self.settings, serials)]

    def let_be(self, serial: str) -> bool:
        from workers.crash_recovery import let_be

        return let_be(self.settings.state, serial)
