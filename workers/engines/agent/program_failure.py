"""The reasons why somebody else's program gave no result: each a cause with a remedy, and none the phone's fault."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from typing import NoReturn

from orchestrator.model.errors import StableError
from orchestrator.model.event import Event, Line, Process

from .process import AgentRun

LAST_LINES = 5
Causes = Sequence[tuple[str, str, str]]
"""Expression, cause, remedy."""
OUT_OF_MEMORY = (
    r"(?i)out of memory|bad_alloc|MemoryError|(cannot|unable to|failed to) allocate|insufficient memory",
    "out_of_memory",
    "take a smaller model, batch or context",
)
CAUSES: Causes = (
    (
        r"CANNOT LINK EXECUTABLE.*library|error while loading shared libraries|dlopen failed: library",
        "library_missing",
        "put the library beside the program, or into `lib/` there: both are searched",
    ),
    (
        r"Exec format error|has bad ELF magic|wrong ELF class|is for EM_|has unexpected e_machine|invalid ELF header",
        "wrong_abi",
        "build it for the device's ABI (`farm devices` shows it): a script needs `#!` and the path of its interpreter",
    ),
    (
        r"cannot start .*(No such file|not found)",
        "no_program",
        "write the path below `workload.files`, as `./my_bench`; a dynamic program for Linux has no loader on Android",
    ),
    (r"cannot start .*Permission denied", "not_executable", "name a file that can be run; scripts begin with `#!`"),
    (
        r"not found: needed by|cannot locate symbol|undefined symbol",
        "wrong_library",
        "bring the library that it was built with",
    ),
    OUT_OF_MEMORY,
)
"""Words of loaders, kernels and allocators -> cause and remedy."""
LONGER = "give `sampling.deadline` more, or ask for fewer samples; one that hangs tells more when it is run by hand"
CRASHES = {"SIGILL": "it has instructions that this processor lacks: build it for an older one"}


class ProgramFailed(StableError):
    """A program that is not the farm's gave no result."""

    cause = "program_failed"


def raise_for_process(agent: AgentRun, what: str, serial: str, own: Causes = ()) -> None:
    """Raise ProgramFailed where the program was not started, or did not end in time and with 0. `own`: words of this
    program."""
    error = agent.error
    if error is None or error.code not in ("program_failed", "deadline"):
        return
    lines = [event for event in agent.events if isinstance(event, Line)]
    if error.code == "deadline":
        raise_failure(error.code, f"`{what}` was {error.message}{last_words(lines)}", serial, LONGER)
    said, name = last_words(lines), signal_of(agent.events)
    text = "\n".join([error.message, *(line.text for line in lines[-50:])])
    cause, remedy = ProgramFailed.cause, "run it by hand on the device, with the same words"
    if found := cause_in(text, (*CAUSES, *own)):
        cause, remedy = found
    elif name:
        cause, remedy = "program_crashed", CRASHES.get(name, "find its fault with a debug build, on this device")
    message = error.message.replace(f"signal {_signal(agent.events)} ended", f"{name} ended") if name else error.message
    raise_failure(cause, f"`{what}`: {message}{said}", serial, remedy)


def cause_in(text: str, causes: Causes) -> tuple[str, str] | None:
    """Return cause and remedy of the first expression that a text has."""
    return next(((cause, remedy) for pattern, cause, remedy in causes if re.search(pattern, text)), None)


def signal_of(events: Iterable[Event]) -> str:
    """Return the name of the signal that ended the program; empty: none did."""
    number = _signal(events)
    try:
        return signal.Signals(number).name if number else ""
    except ValueError:
        return f"signal {number}"


def _signal(events: Iterable[Event]) -> int:
    return next((event.signal for event in events if isinstance(event, Process) and event.signal), 0)


def last_words(lines: Sequence[Line]) -> str:
    """Return the end of what a program printed, as a part of a sentence."""
    told = [line.text.strip()[:200] for line in lines if line.text.strip()][-LAST_LINES:]
    return "; its last words: " + " | ".join(told) if told else "; it printed nothing"


def raise_failure(cause: str, message: str, serial: str, remedy: str) -> NoReturn:
    """Raise ProgramFailed with a cause of its own."""
    raised = ProgramFailed(message, device=serial, remedy=remedy)
    raised.cause = cause
    raise raised
