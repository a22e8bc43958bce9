"""Read the agent's journal on from where the last reading ended."""

from __future__ import annotations

from pydantic import ValidationError

from orchestrator.model.errors import DeviceSick
from orchestrator.model.event import Event, parse_event

MAX_LINE_BYTES = 64 << 10
MAX_EVIDENCE = 50
_CUT = 500


class Garbage(DeviceSick):
    """The journal holds what no agent writes. `evidence`: the lines, as found."""

    def __init__(self, message: str, *, device: str, evidence: tuple[str, ...]) -> None:
        super().__init__(message, device=device, remedy="see the record's evidence; check the phone's storage")
        self.evidence = evidence


class Journal:
    """Events of one journal in order. A line counts once it is whole."""

    def __init__(self, serial: str) -> None:
        self._serial = serial
        self._rest = b""
        self.offset = 0
        """Bytes of the journal that were read."""
        self.events: list[Event] = []
        """Whoever follows a long one may clear it."""
        self._due = 0

    def feed(self, content: bytes) -> list[Event]:
        """Take what follows `offset`; returns the new events. Raises Garbage, with the unreadable lines as evidence."""
        self.offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        fresh = [self._event(lines, number) for number in range(len(lines))]
        if len(self._rest) > MAX_LINE_BYTES:
            raise self._garbage(f"a line of more than {MAX_LINE_BYTES} bytes", [self._rest])
        return fresh

    def _event(self, lines: list[bytes], number: int) -> Event:
        line = lines[number]
        if len(line) > MAX_LINE_BYTES:
            raise self._garbage(f"a line of {len(line)} bytes", lines[number:])
        try:
            event = parse_event(line)
        except ValidationError as e:
            problem = e.errors(include_url=False, include_input=False)[0]
            raise self._garbage(f"no event: {problem['msg']} at {problem['loc']}", lines[number:]) from e
        if event.seq != self._due:
            raise self._garbage(f"event {event.seq} where {self._due} was due", lines[number:])
        self._due += 1
        self.events.append(event)
        return event

    def _garbage(self, what: str, lines: list[bytes]) -> Garbage:
        return Garbage(f"the agent's journal is unreadable: {what}", device=self._serial, evidence=evidence(lines))


def evidence(lines: list[bytes]) -> tuple[str, ...]:
    """Lines as a record may keep them."""
    return tuple(line[:_CUT].decode(errors="backslashreplace")[:_CUT] for line in lines[:MAX_EVIDENCE])
