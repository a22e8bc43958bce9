"""The files that attempts of a training leave on the device: a checkpoint, from which another attempt goes on there,
and each its journal, which tells the epochs before it."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from pydantic import ValidationError

from orchestrator.model.event import Sample, parse_event
from workers.connection.base import DeviceConnection
from workers.devices.install import run
from workers.engines.pocketfarm.plans.plan_store import StoredPlan

KEPT_S = 14 * 24 * 3600
"""The age of a checkpoint on a device from which on nobody tries its job again."""
JOURNAL = ".jsonl"


@dataclass(frozen=True)
class Left:
    """The files left by earlier attempts of a job."""

    checkpoint: bool
    journals: tuple[str, ...]
    """Paths on the device, the oldest attempt's first."""


def journal_of(checkpoint: str, attempt: int | str) -> str:
    """Return the journal's place beside the checkpoint: it stays where the attempt is lost."""
    return f"{checkpoint}.{attempt}{JOURNAL}"


def left_by_attempts(connection: DeviceConnection, file: str) -> Left:
    """Find files with that checkpoint. Makes its folder; removes what a kill cut short, and other jobs' old files."""
    folder = file.rpartition("/")[0]
    run(connection, "mkdir", "-p", folder)
    names = run(connection, "ls", folder).split()
    own = file.rpartition("/")[2]
    others = [f"{folder}/{name}" for name in names if name.partition(".")[0] != own]
    if others:
        now = int(run(connection, "date", "+%s"))
        listed = connection.shell(["stat", "-c", "%Y %n", *others]).stdout.decode()  # one may just be gone
        written = [line.split(" ", 1) for line in listed.splitlines()]
        old = [name for at, name in written if now - int(at) > KEPT_S]
        if old:
            run(connection, "rm", "-f", *old)
    beside = [name for name in names if name.startswith(f"{own}.")]
    attempts = [int(name[len(own) + 1 : -len(JOURNAL)]) for name in beside if name.endswith(JOURNAL)]
    half = [f"{folder}/{name}" for name in beside if not name.endswith(JOURNAL)]
    if half:
        run(connection, "rm", "-f", *half)
    return Left(own in names, tuple(journal_of(file, attempt) for attempt in sorted(attempts)))


def epochs_in(connection: DeviceConnection, journals: Sequence[str]) -> tuple[Sample, ...]:
    """All that they tell, the oldest journal's first; a line that a lost device left half written is none."""
    if not journals:
        return ()
    found = []
    for line in connection.shell(["grep", "-ahF", '"event":"sample"', *journals], deadline_s=60.0).stdout.splitlines():
        try:
            event = parse_event(line)
        except ValidationError:
            continue
        if isinstance(event, Sample) and event.stage:
            found.append(event)
    return tuple(found)


def epochs_before(own: Sequence[Sample], told: Sequence[Sample], plan: StoredPlan) -> tuple[Sample, ...]:
    """Return earlier attempts' epochs before its own, in order; of one that was run again the newest.

    Without any of its own the training was over: all of them.
    """
    newest = {place_of_epoch(each, plan): each for each in told}
    end = place_of_epoch(own[0], plan) if own else math.inf
    return tuple(newest[place] for place in sorted(newest) if place < end)


def place_of_epoch(sample: Sample, plan: StoredPlan) -> int:
    """Return an epoch's place among those of all stages, from 0 on."""
    stages = takewhile(lambda stage: stage.name != sample.stage, plan.plan.stages)
    return sum(stage.epochs for stage in stages) + (sample.epoch or 0)


def pull_checkpoint(connection: DeviceConnection, file: str, journals: Sequence[str]) -> bytes:
    """Its content, which ends with its own hash; the device has neither it nor the journals any more."""
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        target = Path(temporary) / "checkpoint"
        connection.pull(file, target)
        content = target.read_bytes()
    run(connection, "rm", "-f", file, *journals)
    return content
