"""The stream to one resident agent: requests out, events in."""

from __future__ import annotations

import json
import select
import time

from orchestrator.model.errors import AgentFault, DeviceSick, TransportLost
from orchestrator.model.event import Device, Error, Event, Power, Ready, Result, Served
from orchestrator.model.power import GaugeCalibration
from orchestrator.model.telemetry import Reading, celsius_of_tenths
from workers.connection.stream import Stream
from workers.devices.agent_journal import Journal


class AgentWire:
    """A wire for one thread; `shut` may come from another."""

    def __init__(self, stream: Stream, serial: str, gauge: GaugeCalibration | None = None) -> None:
        self._stream, self.serial, self.gauge = stream, serial, gauge
        self._journal = Journal(serial)
        self._waiting: list[Served] = []
        self._ready = self._over = False
        self.readings: list[Reading] = []
        self.devices: list[Device] = []
        """The devices on which the networks run."""

    def fileno(self) -> int:
        return self._stream.fileno()

    def await_ready(self, deadline_s: float) -> None:
        """Wait until all networks are loaded and warm. Raises AgentFault (why), DeviceSick, TransportLost."""
        end = time.monotonic() + deadline_s
        while not self._ready:
            self._hear(end)

    def ask(
        self, number: int, *, network: str = "", count: int = 1, prompt: int = 0, generate: int = 0, hold_ns: int = 0
    ) -> None:
        how = f'"prompt":{prompt},"generate":{generate}' if generate else f'"count":{count}'
        what = f'"network":{json.dumps(network)},{how}' if network else f'"hold_ns":{hold_ns}'
        self._stream.send(f'{{"id":{number},{what}}}\n'.encode())

    def answers(self) -> list[Served]:
        self._take(self._stream.receive())
        found, self._waiting = self._waiting, []
        return found

    def await_answer(self, deadline_s: float) -> Served:
        """The next one."""
        end = time.monotonic() + deadline_s
        while not self._waiting:
            self._hear(end)
        return self._waiting.pop(0)

    def finish(self, deadline_s: float) -> None:
        """No more requests: the agent says its last words and ends."""
        self._stream.close_input()
        end = time.monotonic() + deadline_s
        while not self._over:
            self._hear(end)

    def shut(self) -> None:
        self._stream.shut()

    def close(self) -> None:
        self._stream.close()

    def _hear(self, end: float) -> None:
        left_s = end - time.monotonic()
        if left_s <= 0:
            raise DeviceSick("the resident agent does not answer", device=self.serial, remedy="restart the device")
        if select.select([self._stream], [], [], left_s)[0]:
            self._take(self._stream.receive())

    def _take(self, content: bytes) -> None:
        fresh = self._journal.feed(content)
        self._journal.events.clear()
        for event in fresh:
            self._keep(event)

    def _keep(self, event: Event) -> None:
        if isinstance(event, Served):
            self._waiting.append(event)
        elif isinstance(event, Power):
            self.readings.append(
                Reading(
                    event.t_ns,
                    event.current_ua,
                    event.voltage_uv,
                    event.status,
                    celsius_of_tenths(event.temp_dc),
                    celsius_of_tenths(event.skin_dc),
                    max(event.cpu_khz, default=None),
                    event.gpu_hz,
                )
            )
        elif isinstance(event, Device):
            self.devices.append(event)
        elif isinstance(event, Ready):
            self._ready = True
        elif isinstance(event, Result):
            self._over = True
        elif isinstance(event, Error):
            if event.code == "cancelled":
                raise TransportLost(f"the resident agent was ended: {event.message}", device=self.serial)
            raise AgentFault(f"the resident agent ended: {event.code}: {event.message}", device=self.serial)
