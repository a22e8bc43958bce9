"""The interface between the supervisor and a part."""

from __future__ import annotations

import secrets
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from orchestrator.model.errors import SetupError

ANSWER_S = 30.0


def nothing() -> None:
    """Do nothing: most parts need no more before they start and after they are ready."""


@dataclass(frozen=True)
class Part:
    """One process of the farm."""

    name: str
    command: tuple[str, ...]
    is_ready: Callable[[], bool]
    """Asked ten times a second until it says True; must not block longer than a second or raise."""
    detail: str = ""
    """A detail for people: port, version."""
    environment: dict[str, str] = field(default_factory=dict)
    """Added to what all parts have."""
    before_start: Callable[[], None] = nothing
    """Prepares every start, also a restart."""
    after_ready: Callable[[], None] = nothing
    """Follows every time it becomes ready. May raise FarmError: the part is then restarted."""
    beside: bool = False
    """True if it starts together with the part before it, whose readiness it does without."""
    needed: bool = True
    """True if the farm needs this part; the supervisor says that another part is not there, and tries again."""
    ready_limit_s: float = 60.0
    grace_s: float = 5.0
    """The time from SIGTERM to SIGKILL."""


def said_by(*command: str) -> str:
    """Return what a program says of itself. Raises SetupError where it does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        why = f"not within {ANSWER_S:g} s" if isinstance(e, subprocess.TimeoutExpired) else e.strerror
        raise SetupError(
            f"`{' '.join(command)}` does not answer: {why}",
            remedy="this machine has too much to do, or too little memory: end other work, then start the farm again",
        ) from e
    return (done.stdout if done.returncode == 0 else done.stderr).decode(errors="replace")


def free_port() -> int:
    """A loopback port that was free a moment ago; none of those that a system gives to whoever connects (on Linux from
    32768 on): such a one may be taken before it is used."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", 20_000 + secrets.randbelow(10_000)))
            return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Return whether a loopback port can be bound now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
