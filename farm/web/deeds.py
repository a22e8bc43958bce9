"""The acts that the pages offer, done as the command line does them."""

from __future__ import annotations

import time
from collections.abc import Callable

from redis import Redis

from farm import holds
from orchestrator.config import Settings
from orchestrator.errors import FarmError, SpecError, Unsupported
from orchestrator.ledger import Ledger
from orchestrator.model.quantity import parse_seconds


class Deeds:
    """`dashboards.web.Actions` on this farm."""

    def __init__(self, settings: Settings, ledger: Callable[[], Ledger], redis: Callable[[], Redis]) -> None:
        self._settings, self._ledger, self._redis = settings, ledger, redis

    def cancel(self, target: str) -> str:
        cancelled = self._ledger().cancel(target)
        return f"cancelled {_jobs(cancelled)}" if cancelled else "nothing was left to cancel"

    def retry(self, target: str) -> str:
        again = self._ledger().retry(target)
        return f"{_jobs(again)} again in the queue" if again else "nothing there is lost, failed or killed"

    def hold(self, serial: str, who: str, lasting: str, note: str) -> str:
        ledger = self._ledger()
        holds.check_known([serial], ledger, self._connected())
        running = holds.hold(ledger, {serial}, who, _end(lasting), note)
        text = next(each.text for each in ledger.standing.holds() if each.serial == serial)
        first = f"; {running[0].label} is finished first" if running else ""
        return f"{serial} is held {text}{first}"

    def release(self, name: str) -> str:
        holds.release(self._ledger(), self._settings.state, name)
        return f"{name} is released"

    def restore(self, serial: str) -> str:
        from workers.discovery.crash_recovery import left_behind, restore_devices

        if serial not in left_behind(self._settings.state):
            raise Unsupported(
                f"nothing is left to put back on {serial} from this machine", remedy="`farm restore` on its host"
            )
        (done,) = restore_devices(self._settings, [serial])
        if done.left:
            raise Unsupported(f"{serial}: left: {done.left}", remedy="`farm release` takes it as it is")
        return f"{serial}: {', '.join((*('supply switched on',) * done.supply, *done.settings))}"

    def _connected(self) -> Redis | None:
        try:
            return self._redis()
        except FarmError:
            return None


def _end(lasting: str) -> float | None:
    """Unix time; None: until it is released. Raises SpecError where it is no time."""
    if not lasting.strip():
        return None
    try:
        return time.time() + parse_seconds(lasting)
    except ValueError as e:
        raise SpecError(f"a hold for {lasting!r}: {e}", remedy="write `3 h` or `30 min`, or leave it empty") from e


def _jobs(ids: list[str]) -> str:
    return f"{len(ids)} job{'s' * (len(ids) != 1)}"
