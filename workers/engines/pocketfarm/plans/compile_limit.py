"""Limit compiling: it ends by the block's deadline, and when its job is cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernels.errors import interruptible
from orchestrator.model.errors import StableError


class CompiledTooLong(StableError):
    """Another attempt would take as long."""

    cause = "deadline"


@contextmanager
def compiling_within(deadline_s: float, serial: str, check: Callable[[], None]) -> Iterator[None]:
    """Work inside stops at a checkpoint where `check` raises, or after `deadline_s` of processor time of this thread.

    Of processor time, not of the clock on the wall: whether a plan compiles in time must not depend on how many other
    sessions the host serves. Raises CompiledTooLong, and what `check` raises.
    """
    began = time.thread_time()

    def go_on() -> None:
        check()
        if time.thread_time() - began > deadline_s:
            raise CompiledTooLong(
                f"compiling: not done within the block's deadline of {deadline_s:g} s of processor time",
                device=serial,
                remedy="raise sampling.deadline",
            )

    with interruptible(go_on):
        yield
