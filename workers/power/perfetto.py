"""Record power rails through perfetto on the phone, without root."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from orchestrator.energy.perfetto_trace import rails_of_trace
from orchestrator.model.enrolment import SourceFact
from orchestrator.model.errors import FarmError
from orchestrator.model.event import Event
from orchestrator.model.power import PowerSeries, PowerSource, Scope
from workers.connection.base import DeviceConnection
from workers.connection.quote import quote
from workers.devices.install import run

from .base import Bench, MeterLost
from .odpm import rails_series

TRACES = "/data/misc/perfetto-traces"
"""The one folder that perfetto may write and the shell may read."""
FIRST_SDK = 29
END_S = 15.0
CONFIG = """
buffers { size_kb: 4096 fill_policy: RING_BUFFER }
data_sources {
  config { name: "android.power" android_power_config { battery_poll_ms: 100 collect_power_rails: true } }
}
write_into_file: true
file_write_period_ms: 5000
flush_period_ms: 5000
duration_ms: 7200000
"""
"""Rails are polled as often as the battery; 100 ms is the shortest period. After two hours it ends by itself."""


class Perfetto:
    """Implements `PowerMeter`; the trace has the device's own clock."""

    def __init__(self, connection: DeviceConnection, traces: str = TRACES) -> None:
        self.fact = SourceFact(source=PowerSource.PERFETTO, scope=Scope.RAILS, name="power rails", usable=True)
        self._connection = connection
        self._trace = f"{traces}/pocketfarm.pftrace"
        self._config = f"{connection.folder}/perfetto.txt"
        self._pid = ""

    def start(self) -> None:
        """perfetto may not read the shell's files: the configuration goes through a pipe."""
        run(self._connection, "mkdir", "-p", self._connection.folder)
        run(self._connection, "rm", "-f", self._trace)
        with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
            file = Path(temporary) / "perfetto.txt"
            file.write_text(CONFIG)
            self._connection.push(file, self._config)
        command = ["perfetto", "--background", "-c", "-", "--txt", "-o", self._trace]
        output = run(
            self._connection, "sh", "-c", f"{quote(['cat', self._config])} | {quote(command)}", deadline_s=40.0
        )
        pids = [word for word in output.split() if word.isdigit()]
        if not pids:
            raise MeterLost(f"perfetto did not start: {output[-300:]}", remedy="run `adb shell perfetto --query`")
        self._pid = pids[-1]

    def stop(self, events: Sequence[Event] = ()) -> tuple[PowerSeries, ...]:  # noqa: ARG002 (the agent has no part in it)
        pid, self._pid = self._pid, ""
        if not pid:
            return ()
        try:
            self._end(pid)
            rails = rails_of_trace(self._pull())
        except ValueError as e:
            raise MeterLost(f"the trace cannot be read: {e}", device=self._connection.serial) from e
        finally:
            with contextlib.suppress(FarmError):
                self._connection.shell(["rm", "-f", self._trace, self._config])
        found = rails_series(PowerSource.PERFETTO, rails)
        if not found:
            raise MeterLost("perfetto found no power rails on this phone", remedy="use the gauge or an external meter")
        return found

    def _end(self, pid: str) -> None:
        self._connection.shell(["kill", "-TERM", pid])
        ends_at = time.monotonic() + END_S
        while self._connection.shell(["kill", "-0", pid]).code == 0:
            if time.monotonic() > ends_at:
                self._connection.shell(["kill", "-KILL", pid])
                raise MeterLost("perfetto did not end", device=self._connection.serial, remedy="restart the phone")
            time.sleep(0.1)

    def _pull(self) -> bytes:
        with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
            file = Path(temporary) / "trace"
            self._connection.pull(self._trace, file)
            return file.read_bytes()


def perfetto(bench: Bench) -> Perfetto:
    """Raises Unsupported where the phone has no perfetto."""
    facts, connection = bench.member.facts, bench.member.connection
    if facts.kind != "phone" or facts.sdk < FIRST_SDK:
        raise bench.unsupported(f"perfetto reads power rails from Android 10 on (SDK {FIRST_SDK})", "use the gauge")
    if connection.shell(["sh", "-c", "command -v perfetto"]).code != 0:
        raise bench.unsupported("it has no `perfetto`", "use the gauge or an external meter")
    return Perfetto(connection)
