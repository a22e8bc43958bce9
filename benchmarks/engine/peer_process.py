"""A peer as a contender: drives `python -m benchmarks.engine.peers` over pipes, with a watchdog."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

import numpy as np

from .caches import cache_environment
from .case import Arrays, Case
from .contender import ContenderError, Opened, Turn

_LIMIT_S = 300.0
_SAID = 300
"""Characters kept of what a process printed before it died."""
_RESULTS = ("device", "version", "remarks", "copies_inside", "import_ms", "load_ms", "first_ms")


class Peer:
    """A peer as a `contender.Contender`."""

    def __init__(
        self,
        name: str,
        module: str,
        folder: Path,
        *,
        threads: int,
        device: str,
        variables: dict[str, str],
        precision: str = "fp32",
    ) -> None:
        """`folder`: for files, the caller's to remove. `variables`: further ones of the environment."""
        self.name, self._module, self._folder = name, module, folder
        self._threads, self._device, self._variables = threads, device, variables
        self._precision = precision
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str] = queue.Queue()
        self._case: Case | None = None
        self._copies_inside = True

    def open(self, case: Case, caches: Path) -> Opened:
        self.close()
        self._case, self._answers = case, queue.Queue()
        self._folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **cache_environment(caches), **self._variables}
        argv = [sys.executable, "-m", "benchmarks.engine.peers", self._module]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )
        assert self._process.stdout
        reader = threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True)
        reader.start()
        model = {
            "network": case.network, "seed": case.seed, "batch": case.batch, "onnx": str(case.onnx),
            "folder": str(self._folder), "threads": self._threads, "device": self._device,
            "precision": self._precision,
        }  # fmt: skip
        answer = self._ask("open", model=model, inputs=str(case.files[0]), output=str(self._output))
        device, version, remarks, copies_inside, *ms = (answer[key] for key in _RESULTS)
        self._copies_inside = copies_inside
        steps = dict(zip(("import", "load", "first inference"), ms, strict=True))
        return Opened(self._read_output(), device, version, steps, copies_inside, remarks)

    def infer(self, index: int) -> Arrays:
        assert self._case
        self._ask("infer", inputs=str(self._case.files[index]), output=str(self._output))
        return self._read_output()

    def turn(self, warmup_s: float, seconds: float, least: int) -> Turn:
        assert self._case
        found = self._ask("time", warmup_s=warmup_s, seconds=seconds, least=least)
        copies_ms = None
        if not self._copies_inside:
            copies_ms = self._ask("copies", inputs=str(self._case.files[0]))["copies_ms"]
        return Turn(found["samples_ms"], copies_ms, processor_ms=found["processor_ms"])

    def close(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process = None

    @property
    def _log(self) -> Path:
        return self._folder / "stderr.txt"

    @property
    def _output(self) -> Path:
        return self._folder / "output.npz"

    def _read_output(self) -> Arrays:
        with np.load(self._output) as file:
            return {name: file[name] for name in file.files}

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        process = self._process
        assert process and process.stdin
        try:
            process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._answers.get(timeout=_LIMIT_S))
        except queue.Empty as e:
            process.kill()
            raise ContenderError(f"no answer to {do} within {_LIMIT_S:g} s") from e
        except (OSError, json.JSONDecodeError) as e:
            raise ContenderError(f"its process ended with status {process.wait()}: {self._last_words()}") from e
        if "error" in answer:
            raise ContenderError(str(answer["error"]))
        return answer

    def _last_words(self) -> str:
        return " ".join(self._log.read_text(errors="replace").split())[-_SAID:]


def _read(lines: IO[str], answers: queue.Queue[str]) -> None:
    with contextlib.suppress(ValueError):  # closed meanwhile
        for line in lines:
            answers.put(line)
    answers.put("")  # the process has ended
