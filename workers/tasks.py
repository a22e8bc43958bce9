"""The Celery task: a wake-up that names a device and a token. Everything else is in the lease."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_shutting_down

from orchestrator.coordination.queue import WAKE, queue_name


def register(app: Celery, on_wake: Callable[[str, int], None]) -> None:
    """Give the app its one task."""

    @app.task(name=WAKE, ignore_result=True)  # type: ignore[untyped-decorator]
    def wake(serial: str, token: int) -> None:
        """Lost, late or doubled: harmless. Who may work is decided where the lease is claimed."""
        on_wake(serial, token)


def consume(app: Celery, host: str, sessions: int, on_stop: Callable[[], None]) -> int:
    """Serve the host's queue until SIGTERM or SIGINT, then call `on_stop` and wait for the sessions; exit status."""

    def stopping(**_: object) -> None:
        on_stop()

    worker_shutting_down.connect(stopping, weak=False)
    setup_logging.connect(_leave_logging, weak=False)
    warnings.simplefilter("ignore", SecurityWarning)  # about pickle for root; the farm's messages are JSON only
    try:
        worker = app.Worker(
            hostname=f"farm@{host}",
            pool="threads",
            concurrency=sessions,
            queues=[queue_name(host)],
            loglevel="WARNING",
            quiet=True,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        worker.start()
        return int(worker.exitcode or 0)
    finally:
        worker_shutting_down.disconnect(stopping)
        setup_logging.disconnect(_leave_logging)


def _leave_logging(**_: object) -> None:
    """Do nothing: that somebody listens to this signal keeps Celery's hands off our loggers."""
