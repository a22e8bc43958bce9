"""Run one model with one engine in the engine's own Python, as a block of the farm; no part of the farm is imported.

Beside this file lie `driver.py` of the engine, `settings.json`, `inputs.npz` and the model's files; the command line
has how often it runs, in JSON. The outputs and the samples (int64: start and duration in ns, CLOCK_BOOTTIME; then the
runs of which it is the mean; of an answer the time of each token, then the number of each) go to `result.npz` in
$TMPDIR. Standard output gets one JSON object a line: what loaded, how far it is, or why it cannot run; what libraries
print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STABLE_RUNS, MORE_WARMUPS = 5, 30
REFUSED, SAID = 3, 2000
"""Exit status of an engine that cannot run the model as asked; characters kept of its words."""
PROGRESS_NS = 1_000_000_000
Sample = tuple[int, ...]
"""Start and duration, whatever follows."""
Run = Callable[[], "Sample | None"]
"""Runs a model once; returns the sample where it times itself."""


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def load_driver(path: Path) -> Any:
    """Return the module of a file; its folder is no place where other modules are found."""
    spec = importlib.util.spec_from_file_location("driver", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def timed(run: Run, samples: list[Sample], runs: int = 1) -> None:
    first, told, took = now_ns(), None, 0
    for _ in range(runs):
        began = now_ns()
        told = run()
        took += now_ns() - began
    samples.append(told or (first, round(took / runs), runs))


def warm_up(run: Run, count: int, stable: float) -> list[Sample]:
    """Run `count` times, then more until the last five agree within a share, at most 30 times as many: as our agent."""
    samples: list[Sample] = []
    most = count + max(MORE_WARMUPS, MORE_WARMUPS * count) if stable else count
    while len(samples) < most:
        last = [each[1] for each in samples[-STABLE_RUNS:]]
        is_stable = len(last) == STABLE_RUNS and max(last) - min(last) <= stable * min(last)
        if len(samples) >= count and is_stable:
            break
        timed(run, samples)
    return samples


def take(run: Run, count: int, load_ns: int, least_ns: int, tell: Callable[..., None]) -> list[Sample]:
    """`count` samples at least, and for `load_ns` at least; of runs shorter than `least_ns` means of several."""
    samples: list[Sample] = []
    told, began, runs = 0, now_ns(), 1
    while len(samples) < count or now_ns() - began < load_ns:
        timed(run, samples, runs)
        runs = max(runs, 1 + least_ns // max(1, samples[-1][1]))
        if now_ns() - told > PROGRESS_NS:
            told = now_ns()
            tell(done=len(samples), last_ms=samples[-1][1] / 1e6)
    return samples


def through(engine: Any, parts: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> Callable[[], None]:
    """Return what runs a set once, an inference after the other: its input put, its outputs copied."""

    def once() -> None:
        outputs.clear()
        for part in parts:
            engine.put(part)
            engine.run()
            outputs.append({name: value.copy() for name, value in engine.get().items()})

    return once


def answering(engine: Any, given: Any, context: int, count: int) -> Run:
    """Return what generates one answer behind given tokens, of which the first `context` are taken before the clock."""

    def once() -> Sample:
        engine.begin(given[:context])
        times: list[int] = []
        tokens: list[int] = []
        began = now_ns()
        engine.take(given[context:])
        while len(tokens) < count:
            tokens.append(engine.next())
            times.append(now_ns())
        return began, times[-1] - began, *times, *tokens

    return once


def main() -> int:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def tell(**words: Any) -> None:
        answers.write(json.dumps(words) + "\n")

    here = Path(sys.argv[0]).resolve().parent
    settings = json.loads((here / "settings.json").read_text()) | json.loads(sys.argv[1])
    settings["threads"] = settings["threads"] or len(os.sched_getaffinity(0))
    files = {name: str(here / name) for name in settings["files"]}
    try:
        began = now_ns()
        import numpy as np

        driver = load_driver(here / "driver.py")
        imported = now_ns()
        engine = driver.load(files, settings)
        loaded = now_ns()
        with np.load(here / "inputs.npz") as file:
            given = {name: file[name] for name in file.files}
        each: list[dict[str, Any]] = []
        text = settings.get("text")
        if text:
            run = answering(engine, given["tokens"], text["context"], text["generate"])
        elif settings.get("set"):
            parts = [dict(zip(given, arrays, strict=True)) for arrays in zip(*given.values(), strict=True)]
            run = through(engine, parts, each)
        else:
            engine.put(given)
            run = engine.run
        tell(
            version=engine.version, device=engine.device, threads=engine.threads, remarks=engine.remarks,
            setup=[["library", began, imported - began], ["build", imported, loaded - imported]],
        )  # fmt: skip
        warmups = warm_up(run, settings["warmup"], settings["warmup_stable"])
        gc.collect()
        gc.disable()
        samples = take(run, settings["samples"], settings["load_ns"], 0 if text else settings["least_ns"], tell)
        outputs = {name: np.stack([one[name] for one in each]) for name in each[0]} if each else engine.get()
        columns = 2 + (2 * text["generate"] if text else 1)
        result: dict[str, Any] = {f"output:{name}": value for name, value in outputs.items()}
        result |= {"warmup": np.array(warmups, np.int64).reshape(-1, columns), "timed": np.array(samples, np.int64)}
        np.savez(Path(tempfile.gettempdir(), "result.npz"), **result)
    except MemoryError:
        raise
    except Exception as e:  # whatever it is, it is the engine's answer to this model
        tell(error=f"{type(e).__name__}: {e}"[:SAID])
        answers.flush()
        os._exit(REFUSED)
    tell(done=len(samples), written=True)
    answers.flush()
    os._exit(0)  # some engines crash while they are taken down


if __name__ == "__main__":
    sys.exit(main())
