"""A real Celery worker in the test's process, and a reader of what workers tell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from celery.contrib.testing.worker import start_worker

from orchestrator.coordination.tasks.events import TogetherDispatcher
from tests.waiting import eventually


@contextmanager
def worker_of(app: Celery, queue: str, name: str) -> Iterator[None]:
    """Serve a queue; afterwards the process logs as before, which Celery changes."""
    app.events.dispatcher_cls = TogetherDispatcher
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    options = {"pool": "threads", "concurrency": 2, "perform_ping_check": False, "without_heartbeat": False}
    try:
        with start_worker(app, queues=[queue], hostname=name, **options):
            yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextmanager
def events_of(app: Celery) -> Iterator[list[dict[str, object]]]:
    """Every event that workers send meanwhile."""
    seen = list[dict[str, object]]()
    with app.connection_for_read() as connection, app.connection_for_read() as other:
        redis = other.default_channel.client
        subscribed = redis.pubsub_numpat()
        receiver = app.events.Receiver(connection, handlers={"*": seen.append})
        reading = threading.Thread(target=receiver.capture, kwargs={"wakeup": False}, daemon=True)
        reading.start()
        eventually(lambda: redis.pubsub_numpat() > subscribed)
        try:
            yield seen
        finally:
            receiver.should_stop = True
            reading.join(60)
