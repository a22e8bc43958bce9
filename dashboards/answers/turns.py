"""Threads apart for what waits or computes long: who reads never waits for one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Turns:
    """Runs so many at once, in the order in which they came. What waits is not begun, and is gone with its request."""

    def __init__(self, most: int) -> None:
        self._threads = ThreadPoolExecutor(most)

    async def of(self, does: Callable[..., T], *given: object) -> T:
        """Return what it returns, in its turn. Raises what it raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, does, *given)


ACTS = Turns(16)
"""The turns of acts, at every door: a ledger has forty connections, and those who read need some as well."""
