"""The speed of the farm's pages: answers of the server, first paint in Chromium, and how far live pages are behind.

    python -m benchmarks.farm.pages --phones 400 --jobs 100000 --cells 1000 [-o raw.json]

A Redis and a SQLite ledger of its own, announced phones, half of which are at work, the pages in a process of their own
as `farm up` starts it. Times are of a clock: others on the machine lengthen them.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.command_line import command, run_command, tell
from benchmarks.farm.scheduler_turn import devices, private_redis, submit
from farm.parts.part import free_port
from orchestrator.coordination import client as redis_client
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import Ledger, Start
from orchestrator.model.device import Device
from orchestrator.model.event import Sample
from orchestrator.model.experiment import Experiment, Matrix, Sampling, Workload
from orchestrator.model.live.announcement import PROTOCOL, HostAnnouncement, Progress
from orchestrator.model.live.waiting import WaitKind, WaitReason
from orchestrator.model.record import Outcome, Record
from orchestrator.spec.expansion.expand import expand
from orchestrator.system.config import Settings

REPEATS = 12
CHANGES = 12
START_S = 60.0


class Farm:
    """A farm as its pages see it."""

    def __init__(self, settings: Settings, ledger: Ledger, phones: list[Device]) -> None:
        self.settings, self.ledger, self.phones = settings, ledger, phones
        self.redis = redis_client.connect(settings)
        self.inventory = Inventory(self.redis)
        self.done = 0

    def fill(self, jobs: int, cells: int) -> None:
        """Jobs that wait for a phone each, half of the phones at work, and a report of so many cells."""
        submit(self.ledger, self.phones, jobs, "each")
        waiting = self.ledger.listed.waiting(0, len(self.phones))
        found = [self.ledger.listed.job(row.job_id) for row in waiting.rows[: len(self.phones) // 2]]
        starts = [Start(row.job_id, row.job.candidates[0], "lab0") for row in found]
        self.running = self.ledger.begin_attempts(starts, 3600.0)
        self.ledger.mark_running([each.job_id for each in self.running])
        why = WaitReason(kind=WaitKind.BUSY, text="busy with lenet opencl fp32 #0")
        self.reasons = {row.job_id: why for row in waiting.rows}
        self._report(cells)

    def announce(self) -> None:
        """Everything, as hosts do every two seconds; and a sample more of each session."""
        self.done += 1
        self.inventory.announce_host(HostAnnouncement(host="lab0", worker="w", pid=1, sessions=400, protocol=PROTOCOL))
        self.inventory.announce_waiting(self.reasons)
        for phone in self.phones:
            self.inventory.announce_device(phone)
        for each in self.running:
            self.progress(each.serial, self.done)

    def progress(self, serial: str, done: int) -> None:
        one = next(each for each in self.running if each.serial == serial)
        self.inventory.announce_progress(
            Progress(
                serial=serial, job_id=one.job_id, attempt=1, token=one.token, label="lenet opencl fp32 #0",
                phase="running", done=done, total=10**6, since=time.time(),
            ),
            "lab0",
        )  # fmt: skip

    def _report(self, cells: int) -> None:
        """An experiment of as many cells on one phone, with a record each."""
        phone = self.phones[0]
        experiment = Experiment(
            name="report", workload=Workload(network="lenet"), sampling=Sampling(blocks=1),
            matrix=Matrix(batch=tuple(range(1, cells + 1))),
        )  # fmt: skip
        jobs = expand(experiment, "report-1", [phone]).jobs[:cells]
        self.ledger.submit("report-1", experiment, jobs)
        for start in range(0, len(jobs), 500):
            part = [Start(job.job_id, phone.serial, "lab0") for job in jobs[start : start + 500]]
            for each in self.ledger.begin_attempts(part, 3600.0):
                samples = tuple(
                    Sample(seq=n, t_ns=n, index=n, phase="timed", start_ns=n * 10**9, duration_ns=5 * 10**6 + n)
                    for n in range(6)
                )
                self.ledger.keep(
                    Record(
                        experiment_id="report-1", job_id=each.job_id, cell_id=each.job.cell.cell_id,
                        block=each.job.block, attempt=each.attempt, token=each.token, worker="w", device=phone.facts,
                        source=phone.facts.source, outcome=Outcome.OK, started_at=time.time(), ended_at=time.time(),
                        samples=samples,
                    )
                )  # fmt: skip


@contextmanager
def pages(settings: Settings) -> Iterator[int]:
    """The part as `farm up` starts it; its port."""
    port = free_port()
    environment = {**os.environ, "FARM_STATE": str(settings.state), "FARM_REDIS_URL": settings.redis_url}
    command = [sys.executable, "-m", "farm.web.pages", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        give_up_at = time.monotonic() + START_S
        while time.monotonic() < give_up_at:
            try:
                answer_s(port, "/static/icon.svg")
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()


def answer_s(port: int, path: str) -> float:
    """Return the time until the whole page is there."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    began = time.monotonic()
    connection.request("GET", path)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{path}: {reply.status}")
    return time.monotonic() - began


def paint_ms(browser: Browser, url: str) -> float:
    """First contentful paint, counted from the click, in a browser that has nothing kept."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(url)
    asked = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
    page.wait_for_function(asked)
    found = float(page.evaluate(asked))
    context.close()
    return found


def behind_s(farm: Farm, page: Page) -> float:
    """Return the time from an announcement until its row says so."""
    serial = farm.running[-1].serial
    farm.done += 1
    mark = f"{900000 + farm.done}/"
    farm.progress(serial, 900000 + farm.done)
    began = time.monotonic()
    page.wait_for_function(
        "([id, mark]) => document.getElementById(id)?.innerText.includes(mark)", arg=[f"l-{serial}", mark], polling=5
    )
    return time.monotonic() - began


def measured(settings: Settings, phones: int, jobs: int, cells: int) -> dict[str, object]:
    with Ledger(settings.ledger) as ledger:
        farm = Farm(settings, ledger, devices(phones))
        farm.fill(jobs, cells)
        farm.announce()
        first = ledger.listed.waiting(0, 1).rows[0]
        paths = {
            "fleet": "/", "queue": "/queue", "queue, its end": f"/queue?from={max(0, jobs - phones)}",
            "experiments": "/experiments", "experiment": f"/experiments/{first.experiment_id}",
            "job": f"/jobs/{first.job_id}", "device": f"/devices/{farm.phones[0].serial}", "hosts": "/hosts",
        }  # fmt: skip
        with pages(settings) as port, sync_playwright() as driver:
            began = time.monotonic()
            answer_s(port, "/experiments/report-1/report")
            report_s = {"made": time.monotonic() - began, "kept": answer_s(port, "/experiments/report-1/report")}
            rows = {}
            for name, path in paths.items():
                farm.announce()
                took = [answer_s(port, path) for _ in range(REPEATS)]
                rows[name] = {"median_ms": 1e3 * statistics.median(took), "worst_ms": 1e3 * max(took)}
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            url = f"http://127.0.0.1:{port}"
            for name in ("hosts", "fleet", "queue"):
                farm.announce()
                painted = [paint_ms(browser, url + paths[name]) for _ in range(REPEATS)]
                rows[name] |= {"paint_ms": statistics.median(painted), "worst_paint_ms": max(painted)}
            page = browser.new_page()
            began = time.monotonic()
            page.goto(f"{url}/experiments/report-1/report")
            report_s["opened"] = time.monotonic() - began
            page.goto(url)
            farm.announce()
            behind = []
            for _ in range(CHANGES):
                farm.announce()
                behind.append(behind_s(farm, page))
            browser.close()
        return {
            "phones": phones, "waiting": jobs, "pages": rows, "report_of_cells": cells, "report_s": report_s,
            "behind_s": {"median": statistics.median(behind), "worst": max(behind)}, "load": os.getloadavg()[0],
        }  # fmt: skip


def main() -> None:
    arguments = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder, private_redis(Path(folder)) as url:
        settings = Settings(state=Path(folder), redis_url=url.replace("redis+socket", "unix"), host="lab0")
        found = measured(settings, arguments.phones, arguments.jobs, arguments.cells)
    tell(found, arguments.output)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = command(__doc__)
    made.add_argument("--phones", type=int, default=400)
    made.add_argument("--jobs", type=int, default=100_000)
    made.add_argument("--cells", type=int, default=1000)
    return made


if __name__ == "__main__":
    run_command(main)
