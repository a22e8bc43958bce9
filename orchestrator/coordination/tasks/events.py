"""Events of tasks, out of the way of the sessions that they tell of: a thread sends them together, between sessions."""

from __future__ import annotations

import threading
from typing import Any

from celery.events import EventDispatcher
from celery.worker import state

LATEST_S = 1.0
"""Events are sent after this, even if sessions are under way."""
MOST = 10_000
"""The most events at once; Celery sends so many from the thread that has the last one."""


class TogetherDispatcher(EventDispatcher):  # type: ignore[misc]
    """Celery's, which sends from its loop at once: the session that begins then waits for the interpreter."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._is_idle = threading.Event()
        super().__init__(*args, **{**options, "buffer_group": ["task"], "buffer_limit": MOST, "on_send_buffered": None})

    def enable(self) -> None:
        """Begin to send."""
        super().enable()
        threading.Thread(target=self._send_together, name="events", daemon=True).start()

    def send(self, type: str, *args: Any, **fields: Any) -> None:
        """Keep an event of a task for a moment; send another at once."""
        super().send(type, *args, **fields)
        if type.startswith("task-") and type != "task-received" and not state.reserved_requests:
            self._is_idle.set()

    def close(self) -> None:
        """Send no more."""
        super().close()
        self._is_idle.set()

    def _send_together(self) -> None:
        while not self._closed:
            self._is_idle.wait(LATEST_S)
            self._is_idle.clear()
            self.flush(errors=False)
