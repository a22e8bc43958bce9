"""The processor's time of a no-op block on a virtual phone, alone in its session and in a line: no scheduler.

    python -m benchmarks.farm.block_in_line --lines 1,8 --blocks 48 [-o raw.json]

Of worker, phone, its agents and adb's server. Counted in time of the processor, so that it can be compared on a machine
that has other work; there each block lasts longer, and what a phone does beside its blocks counts for more.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import psutil

from benchmarks.command_line import run_command
from benchmarks.farm.overhead import NETWORK, no_op
from benchmarks.farm.virtual_phones import adb_server, connect
from device_agent.virtual.launch import start_phones
from orchestrator.config import Settings
from orchestrator.expansion.expand import expand
from orchestrator.model.device import Device
from orchestrator.model.lease import LINE_MOST, Assignment
from orchestrator.model.record import Outcome, Record
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Fleet
from workers.engines import Engines, Host
from workers.execution import run_job
from workers.execution.run_job import Workbench, run_line


@dataclass(frozen=True)
class Spent:
    """Milliseconds a block; `wall_ms` by a clock, the others of the processor."""

    in_line: int
    blocks: int
    worker_ms: float
    phone_ms: float
    agents_ms: float
    adb_ms: float
    wall_ms: float
    load: float


def _times(phones: int, adb: int) -> list[float]:
    """Seconds so far, in the order of `Spent`."""
    phone, server = psutil.Process(phones).cpu_times(), psutil.Process(adb).cpu_times()
    agents = phone.children_user + phone.children_system
    return [time.process_time(), phone.user + phone.system, agents, server.user + server.system, time.monotonic()]


def _measured(run: Callable[[int], None], in_line: int, blocks: int, phones: int, adb: int) -> Spent:
    lines = max(1, blocks // in_line)
    before = _times(phones, adb)
    for _ in range(lines):
        run(in_line)
    each = [1e3 * (b - a) / (lines * in_line) for a, b in zip(before, _times(phones, adb), strict=True)]
    return Spent(in_line, lines * in_line, *(round(ms, 2) for ms in each), load=round(os.getloadavg()[0], 1))


def measured(in_lines: list[int], blocks: int, state: Path, network: str = NETWORK) -> list[Spent]:
    run_job.LINE_S = 600.0  # how long a line may last is not the question here
    with (
        adb_server(state) as (port, adb),
        start_phones(state / "phones", ["galaxy_s7"], key=state / ".android" / "adbkey.pub") as phones,
    ):
        settings = Settings(state=state / "farm", host="bench", adb_port=port)
        print(connect(port, phones.serials[0]), flush=True)
        connection = AdbConnection(phones.serials[0], AdbServer(port), serial=phones.phones[0].name)
        bench = Workbench(settings, Fleet(), Engines(Host.alone(settings.state)), "worker")
        member, device_state = enrol_phone(connection, settings)
        bench.fleet.enrol(member, device_state)
        device = Device(facts=member.facts, state=device_state)
        jobs = expand(no_op("line", network=network, blocks=LINE_MOST), "line", [device]).jobs
        tokens = count(1)

        def keep(record: Record, _: bool) -> None:
            if record.outcome is not Outcome.OK:
                raise RuntimeError(f"{record.outcome}: {record.reasons}")

        def run(in_line: int) -> None:
            line = [
                Assignment(
                    serial=member.facts.serial,
                    host="bench",
                    job_id=job.job_id,
                    job=job,
                    attempt=1,
                    token=next(tokens),
                    ttl_s=15.0,
                )
                for job in jobs[:in_line]
            ]
            head = line[0].model_copy(update={"line": tuple(line[1:])})
            run_line(head, bench, lambda: None, lambda *_: None, keep, lambda _: True)

        run(2)  # plan, inputs and agent are there from now on
        return [_measured(run, each, blocks, phones.pid, adb) for each in in_lines]


def main() -> int:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--lines", default="1,8", help="so many blocks a session, in turns")
    made.add_argument("--blocks", type=int, default=48, help="of each")
    made.add_argument("--network", default=NETWORK, help="what a block infers")
    made.add_argument("-o", "--output", type=Path, default=None)
    chosen = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="line-") as folder:
        in_lines = [int(each) for each in chosen.lines.split(",")]
        found = measured(in_lines, chosen.blocks, Path(folder), chosen.network)
    text = json.dumps([asdict(each) for each in found], indent=1)
    print(text)
    if chosen.output:
        chosen.output.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    run_command(main)
