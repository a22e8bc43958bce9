"""Connections that send half a request: each has a time, and an address has only so many of them. Who sends a body too
slowly is told so."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
"""The time for all of a request's head."""
BODY_S = 30.0
LEAST_BYTES_PER_S = 16 << 10
"""A body has `BODY_S`, and as long as it takes at this rate."""
OF_AN_ADDRESS, OF_ALL = 16, 32
"""Connections that were heard and have sent no whole head yet: one more ends the oldest, so that who asks at once is
heard. A laboratory behind one address may open hundreds at the same moment: each is heard before it is judged."""
OF_LIMIT = 2
"""Half of the connections that the server bounds may wait for a head, whoever they are."""
HEARD_S = 0.1
LOOK_S = 0.5


class Patient(H11Protocol):
    """uvicorn's protocol, which by itself waits for ever."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since, self._bytes, self._state = self.loop.time(), 0, self.conn.their_state
        self._is_heard = False
        """The loop has read what came with the connection: it reads before it looks at what is due."""
        self._make_room()
        self._timer = self.loop.call_later(HEARD_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()
        self._bytes += len(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def send_400_response(self, msg: str) -> None:
        """Tell of what is no HTTP as the API tells any fault, and close."""
        self._refuse(400, msg, "check its first line, its headers and its length")

    def _refuse(self, status: int, detail: str, remedy: str) -> None:
        from dashboards.api import problem  # only those who send such things need it

        told = problem(status, "request", detail, remedy, {"Connection": "close"})
        reason = HTTPStatus(status).phrase.encode()
        head = h11.Response(status_code=status, headers=told.raw_headers, reason=reason)
        for event in (head, h11.Data(data=bytes(told.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _note(self) -> None:
        if self.conn.their_state is not self._state:
            self._since, self._bytes, self._state = self.loop.time(), 0, self.conn.their_state

    def _look(self) -> None:
        self._note()
        if self.transport.is_closing():
            return
        if not self._is_heard:
            self._is_heard = True
            self._make_room()
        limit_s = {h11.IDLE: HEAD_S, h11.SEND_BODY: BODY_S + self._bytes / LEAST_BYTES_PER_S}.get(self._state)
        if limit_s is not None and self.loop.time() > self._since + limit_s:
            if self._state is h11.SEND_BODY and self.conn.our_state is h11.SEND_RESPONSE:
                said = f"{self._bytes} bytes of head and body came in {limit_s:.0f} s"
                self._refuse(408, said, "send all that `Content-Length` says, or a file in smaller parts")
            else:
                self.transport.abort()
            return
        self._timer = self.loop.call_later(LOOK_S, self._look)

    def _make_room(self) -> None:
        """End those that waited longest, not who is just being heard, nor who has asked before: those go by time."""
        known = [each for each in self.connections if isinstance(each, Patient) and each._state is h11.IDLE]
        waiting = sorted(known, key=lambda each: each._since)
        heard = [each for each in waiting if each._is_heard and each.cycle is None]
        mine = [each for each in heard if (each.client or ())[:1] == (self.client or ())[:1]]
        most = (self.limit_concurrency or len(waiting) * OF_LIMIT) // OF_LIMIT
        for oldest in {*mine[:-OF_AN_ADDRESS], *heard[:-OF_ALL], *waiting[:-most]} - {self}:
            oldest.transport.abort()
            oldest._state = h11.CLOSED
