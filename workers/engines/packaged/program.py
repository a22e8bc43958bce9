"""A model in an engine's own Python as a program: timed by its driver, judged against the farm's reference."""

from __future__ import annotations

import io
import json
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field, ValidationError

from orchestrator.model.device import ApiFacts, Precision
from orchestrator.model.errors import DeviceSick
from orchestrator.model.event import Device, Event, Line, Phase, Process, Sample, Setup
from orchestrator.model.quantity import counted
from orchestrator.model.record import Outcome
from workers.connection.base import DeviceConnection
from workers.engines.agent import CAUSES, Causes, ExecProgram, cause_in, last_words, lines_of, raise_failure
from workers.engines.engine import Engine, Verdict
from workers.engines.models import Arrays, predictions, rounding_doubts, verify, wrong

RESULT, OUTPUT = "result.npz", "output:"
INSTALL = "install the engine again: `farm engines remove NAME`, then `farm engines install NAME`"
FAULTS: Causes = (
    (r"^(ImportError|ModuleNotFoundError): |cannot open shared object file", "library_missing", INSTALL),
    (
        r" was asked for$|finds no \w+ device",
        "wrong_device",
        "bring what that device needs, or leave the configuration out",
    ),
    *CAUSES,
)
"""Words of an engine that cannot run a model as asked, for another reason than the model."""


class _Told(BaseModel):
    """The driver's words on what it loaded."""

    version: str = Field(min_length=1, max_length=60)
    device: str = Field(min_length=1, max_length=200)
    threads: int = Field(ge=0)
    setup: tuple[tuple[Literal["library", "build"], int, int], ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(kw_only=True)
class DrivenProgram(ExecProgram):
    engine: type[Engine]
    columns: int = 3
    """Numbers of a sample: its start and duration, and what else the driver tells of it."""
    _result: dict[str, Any] = field(default_factory=dict, init=False)

    @property
    def runs_once(self) -> bool:
        return True

    @property
    def what(self) -> str:
        return f"engine {self.engine.name}"

    def progress(self, line: Line) -> tuple[int, float] | None:
        told = _words(line)
        return (int(told["done"]), float(told["last_ms"])) if {"done", "last_ms"} <= told.keys() else None

    def collect(self, connection: DeviceConnection, folder: str) -> None:
        with tempfile.TemporaryDirectory(prefix="pocketfarm-") as own:
            try:
                connection.pull(f"{folder}/{RESULT}", Path(own, RESULT))
            except DeviceSick:
                if "written" in self._told():
                    raise
                self.unread = "it ended with exit status 0, and wrote no result"
                return
            self.load(Path(own, RESULT).read_bytes())
        self.check()

    def load(self, content: bytes) -> None:
        """Take the file that the driver wrote, or note why it is none."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                self._result = dict(arrays)
        except Exception as e:  # a spoilt archive fails in many ways
            self._result, self.unread = {}, f"its result cannot be read: {type(e).__name__}: {e}"

    def check(self) -> None:
        """Note why the run is no result, if it is none: as many samples as asked, one after the other, on a device."""
        for phase, count in (("warmup", self.job.sampling.warmup), ("timed", self.job.sampling.samples)):
            found = self.samples[phase]
            if found.dtype != np.int64 or found.ndim != 2 or found.shape[1] != self.columns or len(found) < count:
                self.unread = self.unread or f"{phase}: {counted(count, 'sample')} asked for, {len(found)} are there"
            elif (found < 0).any() or (found[1:, 0] < found[:-1, :2].sum(axis=1)).any():
                self.unread = self.unread or "its samples overlap, or go back in time"
        try:
            _Told.model_validate(self._told())
        except ValidationError as e:
            self.unread = self.unread or f"it did not say what ran: {e.errors()[0]['msg']}"

    @property
    def samples(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return start and duration in ns of each sample, and what else is told of it, by phase."""
        return {phase: self._result.get(phase, np.empty((0, self.columns), np.int64)) for phase in ("warmup", "timed")}

    def read(self, events: list[Event]) -> Iterator[Event]:
        if self.unread:
            yield from events
            return
        told, samples = _Told.model_validate(self._told()), self.samples
        cpus = next((each.cpus for each in events if isinstance(each, Process)), ())
        for event in events:
            if isinstance(event, Sample):
                yield self._device(event, told, cpus)
                for step, start_ns, duration_ns in told.setup:
                    yield Setup(seq=event.seq, t_ns=event.t_ns, step=step, start_ns=start_ns, duration_ns=duration_ns)
                for phase, found in samples.items():
                    for index, (start_ns, duration_ns, *more) in enumerate(found.tolist()):
                        update = {"index": index, "phase": phase, "start_ns": start_ns, "duration_ns": duration_ns,
                                  **self.told_of(more)}  # fmt: skip
                        yield event.model_copy(update=update)
            elif isinstance(event, Phase) and event.phase == "load":
                first, last = samples["timed"][0], samples["timed"][-1]
                end_ns = int(last[0] + last[1] * self.told_of(last[2:]).get("mean_of", 1))
                yield event.model_copy(update={"start_ns": int(first[0]), "end_ns": end_ns})
            else:
                yield event

    def _device(self, event: Sample, told: _Told, cpus: tuple[int, ...]) -> Device:
        """The engine and its device, where our own agent tells a driver's."""
        cell, build = self.job.cell, f"{self.engine.name} {told.version}"
        facts = ApiFacts(api=cell.backend, version=build, device_name=told.device, driver=build)
        return Device(
            seq=event.seq, t_ns=event.t_ns, facts=facts, precision=cell.precision, plan=self.program_hash,
            threads=told.threads, cpus=cpus,
        )  # fmt: skip

    def judge(self) -> Verdict:
        if error := str(self._told().get("error") or ""):
            refused = "engine_refused", "leave the configuration out, or take another model or version: `farm engines`"
            cause, remedy = cause_in(error, FAULTS) or refused
            printed = [line for line in lines_of(self.agent.events) if line.stream == "stderr"]
            said = f"{self.what} cannot run this model as asked: {error}{last_words(printed) if printed else ''}"
            raise_failure(cause, said, self.serial, remedy.replace("NAME", self.engine.name))
        return super().judge()

    def judge_result(self) -> Verdict:
        if self.unread:
            said = f"{self.what}: {self.unread}{last_words(lines_of(self.agent.events))}"
            raise_failure("unread_output", said, self.serial, "try again; the record keeps what it printed")
        remarks = tuple(self.engine.doubt("remark", each[:500]) for each in _Told.model_validate(self._told()).remarks)
        verdict = self.verdict()
        return replace(verdict, doubts=(*remarks, *verdict.doubts))

    @abstractmethod
    def told_of(self, more: Sequence[int]) -> dict[str, Any]:
        """Return a sample's further fields by the numbers behind its start and duration."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """Judge what a run computed whose samples and words are in order. Raises ProgramFailed."""

    def _told(self) -> dict[str, Any]:
        """The driver's words, the later over the earlier."""
        return {name: value for line in lines_of(self.agent.events) for name, value in _words(line).items()}


@dataclass(kw_only=True)
class VerifiedProgram(DrivenProgram):
    """A program whose outputs are held against the reference's."""

    reference: Arrays
    rounded: Callable[[], Arrays]

    def told_of(self, more: Sequence[int]) -> dict[str, Any]:
        return {"inferences": self.job.inferences, "mean_of": int(more[0])}

    def verdict(self) -> Verdict:
        outputs = {key.removeprefix(OUTPUT): value for key, value in self._result.items() if key.startswith(OUTPUT)}
        if lacking := sorted(self.reference.keys() - outputs.keys()):
            said = f"{self.what} gave no output {', '.join(lacking)}"
            raise_failure("unread_output", said, self.serial, "mend its driver: outputs have the model's names")
        examples = self.job.examples
        try:
            predicted = None if examples is None else predictions(outputs, examples)
            first = outputs if examples is None else {name: value[0] for name, value in outputs.items()}
        except (IndexError, ValueError) as e:
            told = f"{self.what} gave no output for each of {counted(self.job.inferences, 'inference')}: {e}"
            raise_failure("unread_output", told, self.serial, "mend its driver")
        checks = verify(first, self.reference, Precision(self.job.cell.precision), self.rounded)
        outcome, cause = (Outcome.INVALID, "wrong_output") if (reasons := wrong(checks)) else (Outcome.OK, "")
        return Verdict(outcome, cause, reasons, rounding_doubts(checks), checks, predictions=predicted)


def _words(line: Line) -> dict[str, Any]:
    """A line of the driver; empty where somebody else printed it."""
    try:
        told = json.loads(line.text) if line.stream == "stdout" else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
