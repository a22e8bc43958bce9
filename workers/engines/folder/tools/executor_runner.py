"""ExecuTorch by its executor_runner: raw samples, a line each.

Format: examples/portable/executor_runner/executor_runner.cpp of ExecuTorch, as of 2026 (`Iteration 1 of 5: ...`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.model.device import Api
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import Printed
from workers.engines.folder import Asked, FolderEngine, Told, Unread, agreed, number, one_match

SAID = r"I [0-9:.]+ \S+\] "
ITERATION = SAID + r"Iteration (\d+) of (\d+): [0-9.]+ ms"
SAMPLES = Printed(regex=r"^I [0-9:.]+ \S+\] Iteration \d+ of \d+: (?P<sample>[0-9.]+) ms$", unit="ms")


class ExecutorRunner(FolderEngine):
    name = "executor_runner"
    apis = (Api.CPU,)
    programs = ("executor_runner",)
    formats = (".pte",)

    def arguments(self, asked: Asked) -> list[str]:
        return [
            *(f"--model_path={asked.model}", f"--num_executions={asked.warmup + asked.samples}"),
            *((f"--cpu_threads={asked.threads}",) if asked.threads else ()),
        ]

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        samples, wanted = SAMPLES.samples(lines), asked.warmup + asked.samples
        rounds = [found for line in lines if (found := re.fullmatch(ITERATION, line.text.rstrip()))]
        told = [(int(found[1]), int(found[2])) for found in rounds]
        agreed("the iterations", told, [(place + 1, wanted) for place in range(wanted)])
        total = one_match(SAID + r"Model executed successfully (\d+) time\(s\) in ([0-9.]+) ms\.", lines, "the total")
        agreed("executions", int(total[1]), wanted)
        spent_ms = sum(each.duration_ns for each in samples) / 1e6
        told_ms = number(total[2], "the total")
        agreed("the sum of iterations", spent_ms, told_ms, within=1e-5, rounded=1e-6 * wanted)
        for line in lines:
            if line.text.startswith("Output") and re.search(r"\b(nan|inf)\b", line.text, re.IGNORECASE):
                raise Unread(f"an output is not finite: {line.text[:80]}")
        if asked.threads:
            pool = one_match(SAID + r"Resetting threadpool with num threads = (\d+)", lines, "the threads")
            agreed("threads", int(pool[1]), asked.threads)
        return Told(samples, "CPU and what the model's file delegates to", threads=asked.threads, warmup=asked.warmup)


ENGINE = ExecutorRunner
