"""A bounded cache for threads that makes each value once, however many ask for it at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from kernels.errors import checkpoint

Value = TypeVar("Value")
POLL_S = 0.2
"""The time between questions of one who waits for another's work whether it may go on itself."""


class _Abandoned(Exception):
    """The maker of the value was told to stop: that says nothing of the value."""


class SingleFlightCache(Generic[Value]):
    """Keeps the `size` values that were used last. What fails to be made is not kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._futures: OrderedDict[Hashable, Future[Value]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`; the first caller makes it, the others wait. All get what `make` raises.

        A caller whose checkpoint says stop leaves alone: where it was making the value, one of those who wait begins
        anew.
        """
        while True:
            future, is_mine = self._join(key)
            try:
                if is_mine:
                    return self._make(key, future, make)
                while not future.done():
                    checkpoint()
                    wait([future], POLL_S)
                return future.result()
            except _Abandoned:
                checkpoint()
            finally:
                del future  # else it and its exception, whose traceback has this frame, would keep each other

    def drop(self, key: Hashable, value: Value) -> None:
        """Forget a value that is no longer of use, unless there is another one by now."""
        with self._lock:
            future = self._futures.get(key)
            if future is not None and future.done() and not future.exception() and future.result() is value:
                del self._futures[key]

    def _join(self, key: Hashable) -> tuple[Future[Value], bool]:
        """The value to come, and whether the caller is to make it."""
        with self._lock:
            future = self._futures.get(key)
            is_mine = future is None
            if future is None:
                future = self._futures[key] = Future()
            self._futures.move_to_end(key)
            while len(self._futures) > self._size:
                self._futures.popitem(last=False)
            return future, is_mine

    def _make(self, key: Hashable, future: Future[Value], make: Callable[[], Value]) -> Value:
        try:
            value = make()
        except BaseException as e:
            with self._lock:
                if self._futures.get(key) is future:
                    del self._futures[key]
            future.set_exception(_Abandoned() if _is_stopped() else e)
            raise
        else:
            future.set_result(value)
            return value
        finally:
            del future


def _is_stopped() -> bool:
    """Return whether the caller itself may not go on."""
    try:
        checkpoint()
    except Exception:
        return True
    return False
