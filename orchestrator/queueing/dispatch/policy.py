"""The interface of a policy. A user's own is a Python file with a class `Policy` of this kind."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import NamedTuple

from .request import Request
from .server import Server


class Later(NamedTuple):
    """A policy's answer that nobody shall serve the request before `at`."""

    at: float


class Policy:
    """First in, first out, to the server that has been idle longest. Every policy overrides what it does otherwise.

    A policy knows no clock and does nothing: it is asked, with the time, and answers. Options of the spec are
    the keywords of `__init__` after `generator`, the source of all that is random.
    """

    own_queues = False
    """True: each server has its own line, and `choose` is asked when a request arrives, over all servers.
    False: all requests wait in one line, and `choose` is asked over the idle servers."""

    servers: Sequence[Server]
    """All servers, set before the first request."""

    def __init__(self, generator: random.Random) -> None:
        self.generator = generator

    def rank(self, request: Request, now: float) -> float:
        """Return where it stands in its line: the least goes first, among those of one priority."""
        return request.intended

    def choose(self, request: Request, servers: Collection[Server], now: float) -> Server | Later:
        """Return who serves it; `servers` is not empty. `Later(at)`, with one line only: nobody before that moment."""
        return next(iter(servers))
