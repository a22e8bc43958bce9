"""Runs the agent and reads what it says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels.plan.model import Bundle, Dtype
from kernels.plan.port_values import NUMPY, as_port
from orchestrator.model.event import Error, Event, Output, parse_event

from .plans import Array

TIMEOUT_S = 200
"""Generous: a graph of a dozen programs takes a minute to build where every core has other work."""
_PIPE_BYTES = 1 << 20
"""Nobody reads while an agent runs in the background, and it must not wait for that."""
QUICK_TO_COMPILE = {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable", "GALLIVM_PERF": "nopt"}
"""PoCL and Mesa leave out LLVM's optimisations, more than half of what compiling takes; kernels run once here. Whole
networks run optimised in tests/integration, and single operations by pyopencl in tests/unit."""


@dataclass(frozen=True)
class Ended:
    """An agent that has ended: every line is a valid event, numbered without gaps."""

    events: list[Any]
    code: int
    stderr: str
    dtypes: Mapping[str, Dtype] = field(default_factory=dict)
    """Types of the outputs of the plan."""

    def all(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.event == kind]

    def one(self, kind: str) -> Any:
        (event,) = self.all(kind)
        return event

    @property
    def error(self) -> Error:
        assert self.code == 1
        last = self.events[-1]
        assert isinstance(last, Error), last
        return last

    def output(self, number: int = 0) -> Array:
        event = self.all("output")[number]
        assert isinstance(event, Output)
        return np.fromfile(event.file, dtype=NUMPY[self.dtypes.get(event.name, "f32")])


def read_events(text: str) -> list[Event]:
    """Parse lines and check what holds for every journal."""
    events = [parse_event(line) for line in text.splitlines()]
    assert [event.seq for event in events] == list(range(len(events)))
    for kinds in ({"power"}, {"rails"}, {event.event for event in events} - {"power", "rails"}):
        times = [event.t_ns for event in events if event.event in kinds]
        assert times == sorted(times)
    assert events[0].event == "hello"
    assert events[-1].event in ("result", "error")
    assert not any(event.event in ("result", "error") for event in events[:-1])
    return events


@dataclass(frozen=True)
class Agent:
    """The built agent, in a folder of its own."""

    binary: Path
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("POCKETFARM_")}
        kept = {name: os.environ[name] for name in ("POCKETFARM_TEST_SESSION",) if name in os.environ}
        return {**QUICK_TO_COMPILE, **clean, **kept, **extra}

    def argv(self, bundle: Bundle | Path, inputs: Mapping[str, Array], *options: object) -> list[str]:
        """The command line of `run`; a bundle and its inputs are written first."""
        plan = bundle if isinstance(bundle, Path) else self.folder / "plan"
        if isinstance(bundle, Bundle):
            bundle.write(plan)
            ports = {port.name: port for port in bundle.plan.inputs}
            inputs = {name: as_port(ports[name], array) if name in ports else array for name, array in inputs.items()}
        words = [str(self.binary), "run", "--plan", str(plan), "--output-dir", str(self.folder / "outputs")]
        for name, array in inputs.items():
            array.tofile(self.folder / f"{name}.bin")
            words += ["--input", f"{name}={self.folder / name}.bin"]
        return [*words, *map(str, options)]

    def call(self, argv: Sequence[str], **environment: str) -> Ended:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S, env=self.environment(environment), check=False
        )
        assert "Validation Error" not in done.stderr, done.stderr  # by Vulkan's layer, where it is switched on
        return Ended(read_events(done.stdout), done.returncode, done.stderr)

    def run(self, bundle: Bundle | Path, inputs: Mapping[str, Array], *options: object, **environment: str) -> Ended:
        ended = self.call(self.argv(bundle, inputs, *options), **environment)
        outputs = bundle.plan.outputs if isinstance(bundle, Bundle) else ()
        return replace(ended, dtypes={port.name: port.dtype for port in outputs})

    def start(
        self,
        bundle: Bundle | Path,
        inputs: Mapping[str, Array],
        *options: object,
        pipe_bytes: int = _PIPE_BYTES,
        **environment: str,
    ) -> subprocess.Popen[str]:
        """`run` in the background; it is ended with the test. What it says beyond `pipe_bytes` waits to be read."""
        process = subprocess.Popen(
            self.argv(bundle, inputs, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment(environment), pipesize=pipe_bytes,
        )  # fmt: skip
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what was started and still runs."""
        for process in self.started:
            process.kill()
            process.communicate(timeout=TIMEOUT_S)

    def plain(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command that writes no events."""
        return subprocess.run(
            [str(self.binary), *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            env=self.environment(environment),
        )  # fmt: skip
