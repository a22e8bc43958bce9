"""The Celery tasks: a session of a placed block, or of a line of them; a command by hand. Lease or question say what is
to be done, and whether."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery

from orchestrator.coordination.tasks.queue import BY_HAND, MEASURE, Placed


def register(app: Celery, session: Callable[[Placed], None], command: Callable[[str], None]) -> None:
    """Give the app its tasks: `session` and `command` run in them."""

    @app.task(name=MEASURE, ignore_result=True, shared=False)  # type: ignore[untyped-decorator]
    def measure(**placed: Any) -> None:
        """Lost, late or doubled: harmless. Who may work is decided where the lease is claimed."""
        session(Placed(**placed))

    @app.task(name=BY_HAND, ignore_result=True, shared=False)  # type: ignore[untyped-decorator]
    def by_hand(name: str) -> None:
        """Lost, late or doubled: harmless. Who takes the question alone runs it."""
        command(name)
