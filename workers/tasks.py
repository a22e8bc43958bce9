"""The Celery task: a session of a placed block, or of a line of them. The lease says what it is to do, and whether."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_shutting_down

from orchestrator.coordination.queue import MEASURE, Placed, queue_name, worker_name

HEARTBEAT_S = 10.0
"""The time between two signs of life for Celery's tools; hosts announce themselves to the farm by other means."""


def register(app: Celery, session: Callable[[Placed], None]) -> None:
    """Give the app its one task: `session` runs in it."""

    @app.task(name=MEASURE, ignore_result=True, shared=False)  # type: ignore[untyped-decorator]
    def measure(**placed: Any) -> None:
        """Lost, late or doubled: harmless. Who may work is decided where the lease is claimed."""
        session(Placed(**placed))


def consume(app: Celery, host: str, sessions: int, on_stop: Callable[[], None]) -> int:
    """Serve the host's queue until SIGTERM or SIGINT, then call `on_stop` and wait for the sessions; exit status."""

    def stopping(**_: object) -> None:
        on_stop()

    worker_shutting_down.connect(stopping, weak=False)
    setup_logging.connect(_leave_logging, weak=False)
    warnings.simplefilter("ignore", SecurityWarning)  # about pickle for root; the farm's messages are JSON only
    try:
        worker = app.Worker(
            hostname=worker_name(host),
            pool="threads",
            concurrency=sessions,
            queues=[queue_name(host)],
            loglevel="WARNING",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=not app.conf.worker_send_task_events,
            heartbeat_interval=HEARTBEAT_S,
        )
        worker.start()
        return int(worker.exitcode or 0)
    finally:
        worker_shutting_down.disconnect(stopping)
        setup_logging.disconnect(_leave_logging)


def _leave_logging(**_: object) -> None:
    """Do nothing: that somebody listens to this signal keeps Celery's hands off our loggers."""
