"""A Celery worker in this process, and beat beside it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from celery import Celery
from celery.beat import Scheduler, Service
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_shutting_down

from .events import TogetherDispatcher

HEARTBEAT_S = 10.0
"""The time between two signs of life for Celery's tools; hosts announce themselves to the farm by other means."""


def consume(app: Celery, name: str, queue: str, threads: int, on_stop: Callable[[], None] = lambda: None) -> int:
    """Serve a queue until SIGTERM or SIGINT, then call `on_stop` and wait for the tasks; exit status."""

    def stopping(**_: object) -> None:
        on_stop()

    app.events.dispatcher_cls = TogetherDispatcher
    worker_shutting_down.connect(stopping, weak=False)
    setup_logging.connect(_leave_logging, weak=False)
    warnings.simplefilter("ignore", SecurityWarning)  # about pickle for root; the farm's messages are JSON only
    try:
        worker = app.Worker(
            hostname=name,
            pool="threads",
            concurrency=threads,
            queues=[queue],
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


class _Punctual(Scheduler):  # type: ignore[misc]
    """Celery's, which wakes 10 ms early and then asks over and over until a task is due: 10 ms of a core a second."""

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """Return the time to the next look as it is."""
        return n + drift


@contextmanager
def beat(app: Celery) -> Iterator[None]:
    """Send the tasks of the app's schedule, from a thread; it keeps nothing on a disk, and catches up with nothing."""
    service = Service(app, scheduler_cls=_Punctual)
    threading.Thread(target=service.start, name="beat", daemon=True).start()
    try:
        yield
    finally:
        service.stop()
