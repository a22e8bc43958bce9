"""The Celery task: a session of a placed block, or of a line of them. The lease says what it is to do, and whether."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery

from orchestrator.coordination.tasks.queue import MEASURE, Placed


def register(app: Celery, session: Callable[[Placed], None]) -> None:
    """Give the app its one task: `session` runs in it."""

    @app.task(name=MEASURE, ignore_result=True, shared=False)  # type: ignore[untyped-decorator]
    def measure(**placed: Any) -> None:
        """Lost, late or doubled: harmless. Who may work is decided where the lease is claimed."""
        session(Placed(**placed))
