"""A bounded cache for threads: each value is made once, however many ask for it at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Memo(Generic[Value]):
    """Keeps the `size` values that were used last. What fails to be made is not kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._futures: OrderedDict[Hashable, Future[Value]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`; the first caller makes it, the others wait. All get what `make` raises."""
        with self._lock:
            future = self._futures.get(key)
            mine = future is None
            if future is None:
                future = self._futures[key] = Future()
            self._futures.move_to_end(key)
            while len(self._futures) > self._size:
                self._futures.popitem(last=False)
        if mine:
            self._make(key, future, make)
        return future.result()

    def _make(self, key: Hashable, future: Future[Value], make: Callable[[], Value]) -> None:
        try:
            future.set_result(make())
        except BaseException as e:
            with self._lock:
                if self._futures.get(key) is future:
                    del self._futures[key]
            future.set_exception(e)
