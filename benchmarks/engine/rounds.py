"""One network: every contender is opened cold and warm, verified, and measured in turns."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from .case import INPUTS, Case, relative_error
from .contender import Contender, ContenderError, Opened
from .results import NetworkResult, Row, SetUp
from .statistics import turns

TOLERANCE = {"fp32": 1e-3, "fp16": 1.5e-2}
"""Largest error of an output that still gets a time: far above rounding, far below a wrong result."""
PAUSE_S = 0.05
"""The pause between turns: threads of the last contender that spin come to rest."""

Report = Callable[[str, int, int], None]
"""A listener: what is being done, steps done, steps in all."""


@dataclass(frozen=True)
class Effort:
    """The effort of measuring."""

    rounds: int = 4
    seconds: float = 1.0
    """The least time of a turn."""
    samples: int = 5
    """The least samples of a turn."""
    warmup_s: float = 0.3
    cold: bool = True
    """Open everything with empty caches first."""
    tolerance: float = TOLERANCE["fp32"]


@dataclass
class _State:
    contender: Contender
    tolerance: float
    status: str = "ok"
    why: str = ""
    opened: Opened | None = None
    cold: SetUp | None = None
    warm: SetUp | None = None
    host_ms: float | None = None
    errors: list[float] = field(default_factory=list)
    copies_ms: list[float] = field(default_factory=list)
    rounds_ms: list[list[float]] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)

    def verify(self, error: float) -> None:
        self.errors.append(error)
        if not error <= self.tolerance:
            self.status, self.why = "wrong", f"error {error:.2g}, allowed {self.tolerance:g}"

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever the contender cannot do ends its part."""
        try:
            yield
        except ContenderError as e:
            self.status, self.why = "failed", str(e)
        if self.status != "ok":
            self.contender.close()

    def row(self) -> Row:
        opened = self.opened
        return Row(
            contender=self.contender.name, status=self.status, why=self.why,
            device=opened.device if opened else "", version=opened.version if opened else "",
            remarks=opened.remarks if opened else [], error=max(self.errors) if self.errors else None,
            copies_inside=opened.copies_inside if opened else True,
            copies_ms=median(self.copies_ms) if self.copies_ms else None,
            host_ms=self.host_ms, cold=self.cold, warm=self.warm,
            rounds_ms=self.rounds_ms if self.status == "ok" else [],
            processor_ms=self.processor_ms if self.status == "ok" else [],
        )  # fmt: skip


def measure(case: Case, contenders: Sequence[Contender], effort: Effort, caches: Path, report: Report) -> NetworkResult:
    """Measure all on one network. `caches`: a folder for each contender's, kept between networks."""
    began = time.monotonic()
    states = [_State(contender, effort.tolerance) for contender in contenders]
    total, done = len(states) * (1 + effort.rounds), 0
    for state in states:
        report(f"{state.contender.name}: set-up", done, total)
        with state.guarded():
            _open(state, case, effort, caches)
        done += 1
    by_name = {state.contender.name: state for state in states}
    order = turns([state.contender.name for state in states], effort.rounds)
    for index, names in enumerate(order):
        for state in (by_name[name] for name in names):
            report(f"{state.contender.name}: round {index + 1} of {effort.rounds}", done, total)
            if state.status == "ok":
                with state.guarded():
                    _turn(state, case, effort)
                time.sleep(PAUSE_S)
            done += 1
    for state in states:
        state.contender.close()
    return NetworkResult(
        network=case.network, seed=case.seed, input_seeds=list(case.input_seeds), reference=case.reference,
        rows=[state.row() for state in states], at=time.time(), seconds=time.monotonic() - began,
        load_average=os.getloadavg()[0],
    )  # fmt: skip


def _open(state: _State, case: Case, effort: Effort, caches: Path) -> None:
    folder = caches / state.contender.name.replace(" ", "-")
    if effort.cold:
        shutil.rmtree(folder, ignore_errors=True)
        state.cold = _set_up(state, case, folder)
    state.warm = _set_up(state, case, folder) if state.status == "ok" else None
    if not effort.cold and state.opened:  # whether the caches were filled is not known
        state.warm = None
    for index in range(1, INPUTS):
        if state.status == "ok":
            state.verify(relative_error(state.contender.infer(index), case.wanted[index]))


def _set_up(state: _State, case: Case, folder: Path) -> SetUp:
    folder.mkdir(parents=True, exist_ok=True)
    opened = state.contender.open(case, folder)
    state.opened = opened
    state.host_ms = opened.host_ms if opened.host_ms is not None else state.host_ms
    error = relative_error(opened.outputs, case.wanted[0])
    state.verify(error)
    return SetUp(total_ms=opened.total_ms, steps_ms=opened.steps_ms, error=error)


def _turn(state: _State, case: Case, effort: Effort) -> None:
    turn = state.contender.turn(effort.warmup_s, effort.seconds, effort.samples)
    state.rounds_ms.append(turn.samples_ms)
    state.copies_ms += [turn.copies_ms] if turn.copies_ms is not None else []
    state.processor_ms += [turn.processor_ms] if turn.processor_ms is not None else []
    if turn.outputs is not None:
        state.verify(relative_error(turn.outputs, case.wanted[0]))


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for files and caches of one benchmark."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
