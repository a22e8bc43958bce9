"""Errors of the compiler, and checkpoints where its work may be stopped.

Errors are about the input, never about the farm; the caller translates them.

CompileError
|-- ModelError            the model file cannot be read, is truncated, has NaN weights, or a shape does not fit
|   `-- UnsupportedNode   node, operator, opset, what is supported
|-- InputError            an input array of the wrong name, shape or type
|-- OptionError           an option that is unknown or does not fit: names those that do
|-- PlanError             a plan is malformed
|   `-- LimitExceeded     it needs more than the device or the memory budget has: which limit, by how much
|       `-- TooManyParts  a way to save memory takes more steps than are tried
`-- ToolError             a tool of this machine (the SPIR-V compiler) is missing or failed
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_check: ContextVar[Callable[[], None]] = ContextVar("check", default=lambda: None)
"""A question that travels with the thread, so that passes, lowerings and references need no argument for it."""


class CompileError(Exception):
    """Root of the compiler's errors; the message says what, where and how to mend it."""


@dataclass(frozen=True)
class Obstacle:
    """A node of a model that cannot be imported."""

    node: str
    operator: str
    opset: int
    reason: str
    """The cause, the place, and the remedy."""


class ModelError(CompileError):
    """`obstacles`: the nodes that stand in the way, each with its reason; empty where it is the file as a whole."""

    def __init__(self, message: str, obstacles: tuple[Obstacle, ...] = ()) -> None:
        super().__init__(message)
        self.obstacles = obstacles


class UnsupportedNode(ModelError):
    pass


class InputError(CompileError):
    pass


class OptionError(CompileError):
    pass


class PlanError(CompileError):
    pass


class LimitExceeded(PlanError):
    pass


class TooManyParts(LimitExceeded):
    pass


class ToolError(CompileError):
    pass


def checkpoint() -> None:
    """Return where the work may go on; raise whatever `interruptible` was given to raise.

    Loops call it. A single call of NumPy or of a tool is not interrupted; the loop around it is."""
    _check.get()()


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """`check` is asked at every checkpoint of this thread inside, instead of the one outside; it raises to stop."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
