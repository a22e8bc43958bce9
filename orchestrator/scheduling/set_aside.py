"""Items that failed by themselves in a turn are set aside for a while, so that all else goes on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from orchestrator.coordination.client import WrongType
from orchestrator.model.errors import ServiceDown

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)

FIRST_S, MOST_S = 1.0, 60.0
"""Wait before an item is tried again; doubled each time."""


@dataclass(frozen=True)
class _Held:
    until: float
    wait_s: float


class SetAside(Generic[K]):
    """Items of one kind, by whatever names them."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._held: dict[K, _Held] = {}

    def is_due(self, item: K) -> bool:
        held = self._held.get(item)
        return held is None or time.monotonic() >= held.until

    def hold(self, item: K, error: Exception) -> None:
        """The log tells it, the first time with its place in the code."""
        known = self._held.get(item)
        wait_s = min(known.wait_s * 2, MOST_S) if known else FIRST_S
        self._held[item] = _Held(time.monotonic() + wait_s, wait_s)
        told = (self._what, item, wait_s, error)
        log.error("event=set_aside %s=%s retry_s=%g error=%r", *told, exc_info=known is None)

    def release(self, item: K) -> None:
        self._held.pop(item, None)

    def keep(self, is_there: Callable[[K], bool]) -> None:
        """Forget what is not there any more."""
        self._held = {item: held for item, held in self._held.items() if is_there(item)}

    @contextmanager
    def trying(self, item: K) -> Iterator[None]:
        """Do something for an item inside: whatever is wrong with it alone, it waits. Raises ServiceDown."""
        try:
            yield
        except Exception as e:
            if isinstance(e, ServiceDown) and not isinstance(e, WrongType):
                raise
            self.hold(item, e)
        else:
            self.release(item)
