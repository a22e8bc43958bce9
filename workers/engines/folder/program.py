"""The run of a tool that somebody brought: its files and the model's on the device, its output read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from orchestrator.model.base import content_hash
from orchestrator.model.device import ApiFacts
from orchestrator.model.event import Device, Event, Line, Sample
from workers.connection.base import DeviceConnection
from workers.devices.install import file_sha256, put_files
from workers.engines.agent import (
    OUT_OF_MEMORY,
    Causes,
    PrintedProgram,
    cause_in,
    last_words,
    lines_of,
    placed,
    raise_failure,
)  # fmt: skip
from workers.engines.engine import Verdict

from .tool import Asked, Told, Tool

HOW = "docs/howto/engines-of-phones.md"
REFUSES: Causes = (
    OUT_OF_MEMORY,
    (
        r"(?i)failed to (load|mmap|open|read|create context)[^\n]*(model|graph|file)|unable to load model|"
        r"invalid model|NO_SUCHFILE|INVALID_PROTOBUF|NOT_IMPLEMENTED|Loading of method|load_param|"
        r"unsupported (op|layer)",
        "engine_refused",
        f"give a model that this version of the engine reads: {HOW}",
    ),
    (
        r"(?i)disallowed cpu fallback|failed to apply .* delegate|no backends are loaded|invalid device|"
        r"cpu_ep_fallback|(provider|delegate|backend)[^\n]*(not (found|available|supported|enabled|loaded)|disabled)",
        "wrong_device",
        "bring a build with that backend or delegate, or leave the configuration out",
    ),
    (r"(?i)unknown (argument|option|flag)|invalid parameter|unrecognized (arg|option)|Unconsumed cmdline flags",
     "engine_refused", f"bring a version that knows the flag: {HOW}"),
)  # fmt: skip
"""Words of the tools, whatever they exit with."""
MODELS = "engine-models"
"""Folder of the device for models of engines that people brought."""
MOST_MODELS = 4
"""They are large: one more, and those that this run does not need are removed."""


@dataclass(kw_only=True)
class FolderProgram(PrintedProgram):
    tool: Tool
    asked: Asked
    program: str = ""
    """Its path below the folder."""
    version: str = ""
    """The version as who brought it says."""
    model_files: Mapping[str, Path] = field(default_factory=dict)
    on_device: Asked | None = field(default=None, init=False)
    """The same, with the model's path there."""
    result: Told | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.own_causes = REFUSES

    @property
    def runs_once(self) -> bool:
        return True

    @property
    def what(self) -> str:
        return f"{self.tool.name}: {PurePosixPath(self.program).name}"

    def put(self, connection: DeviceConnection, verified: set[str]) -> str:
        identity = content_hash({name: file_sha256(path) for name, path in self.model_files.items()})
        folder = put_files(connection, MODELS, identity, self.model_files, verified=verified, most=MOST_MODELS)
        path = PurePosixPath(folder, self.asked.model)
        self.on_device = replace(self.asked, model=str(path.parent if self.tool.takes_folder else path))
        self.argv = [f"./{self.program}", *self.tool.arguments(self.on_device)]
        return super().put(connection, verified)

    def told(self, run: Sample, lines: Sequence[Line]) -> Sequence[Event]:
        told = self.tool.read(lines, self.on_device or self.asked)
        samples, self.result = placed(run, told.samples, told.mean_of), told
        timed = samples[told.warmup :]
        self.load = (timed[0].start_ns, timed[-1].start_ns + timed[-1].duration_ns * told.mean_of)
        cell, asked = self.job.cell, self.asked
        build = f"{self.tool.name} {told.version or self.version or 'of unknown version'}"
        device = Device(
            seq=run.seq, t_ns=run.t_ns, plan=self.program_hash, precision=cell.precision, threads=told.threads,
            facts=ApiFacts(api=cell.backend, version=build, device_name=told.device, driver=build),
        )  # fmt: skip
        warmups = [each.model_copy(update={"phase": "warmup"}) for each in samples[: told.warmup]]
        context = asked.axes.get("context_tokens", 0)
        tokens = {"context": context, "prompt": asked.prompt, "token_count": asked.generated}
        timed = [each.model_copy(update={"index": place, **tokens}) for place, each in enumerate(timed)]
        return [device, *warmups, *timed]

    def judge_result(self) -> Verdict:
        if self.unread or self.result is None:
            lines = lines_of(self.agent.events)
            words = "\n".join(line.text for line in lines[-200:])
            cause, remedy = cause_in(words, self.own_causes) or (self.unread_cause, "")
            if self.unread_cause == "wrong_device":
                cause, remedy = self.unread_cause, ""
            remedies = {
                "unread_output": "the record keeps what it printed; a version that prints otherwise is not known yet",
                "wrong_device": "bring a build with that backend or delegate, or leave the configuration out",
            }
            said = f"{self.what}: {self.unread}{last_words(lines)}"
            raise_failure(cause, said, self.serial, remedy or remedies[cause])
        return Verdict(doubts=self.tool.judged(with_power=self.job.measures_power))
