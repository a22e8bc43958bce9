"""A peer's process: reads commands and writes answers, one JSON object a line; what libraries print goes to stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

_COPIES = 5
_SAID = 600
"""Characters kept of an error."""


def _elapsed_ms(work: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1e6


class Process:
    """One engine with one model."""

    def __init__(self, module: str) -> None:
        began = time.perf_counter_ns()
        import numpy as np

        self._np = np
        self._module = import_module(f"benchmarks.engine.peers.{module}")
        self.import_ms = (time.perf_counter_ns() - began) / 1e6
        self._engine: Any = None

    def open(self, model: dict[str, Any], inputs: str, output: str) -> dict[str, Any]:
        """Load the model and run it for the first time."""
        from benchmarks.engine.peers.engine import Model

        paths = {key: Path(model[key]) for key in ("onnx", "folder")}
        given = Model(**{**model, **paths})
        prepared = self._module.prepare(given)
        began = time.perf_counter_ns()
        self._engine = self._module.load(given, prepared)
        load_ms = (time.perf_counter_ns() - began) / 1e6
        first_ms = self.infer(inputs, output)["ms"]
        engine = self._engine
        about = {key: getattr(engine, key) for key in ("device", "version", "remarks", "copies_inside")}
        return {**about, "import_ms": self.import_ms, "load_ms": load_ms, "first_ms": first_ms}

    def infer(self, inputs: str, output: str) -> dict[str, Any]:
        """Once, with this input; the outputs go to a file."""
        with self._np.load(inputs) as file:
            given = {name: file[name] for name in file.files}
        found: dict[str, Any] = {}

        def once() -> None:
            self._engine.put(given)
            self._engine.run()
            found.update(self._engine.get())

        ms = _elapsed_ms(once)
        self._np.savez(output, **found)
        return {"ms": ms}

    def time(self, warmup_s: float, seconds: float, least: int) -> dict[str, Any]:
        """Warm up, then samples until there are enough and the time is over."""
        warm = time.monotonic() + warmup_s
        self._engine.run()
        while time.monotonic() < warm:
            self._engine.run()
        began, until, samples = time.process_time(), time.monotonic() + seconds, list[float]()
        while len(samples) < least or time.monotonic() < until:
            samples.append(_elapsed_ms(self._engine.run))
        return {"samples_ms": samples, "processor_ms": (time.process_time() - began) * 1e3 / len(samples)}

    def copies(self, inputs: str) -> dict[str, Any]:
        """Return what bringing the input and fetching the output takes beside `run`."""
        with self._np.load(inputs) as file:
            given = {name: file[name] for name in file.files}
        times = []
        for _ in range(_COPIES):
            put_ms = _elapsed_ms(lambda: self._engine.put(given))
            self._engine.run()
            times.append(put_ms + _elapsed_ms(self._engine.get))
        return {"copies_ms": median(times)}


def main() -> None:
    """Obey until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    process: Process | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if process is None:
                process = Process(sys.argv[1])
            answer = getattr(process, command.pop("do"))(**command)
        except Exception as e:  # whatever it is, it is this peer's row
            answer = {"error": f"{type(e).__name__}: {e}"[:_SAID]}
        answers.write(json.dumps(answer) + "\n")
    answers.flush()
    os._exit(0)  # some engines crash while they are taken down


if __name__ == "__main__":
    main()
