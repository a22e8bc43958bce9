"""MNN's language models by its llm_bench: the mean rate of a block's repetitions, as a table and as JSON.

Format: transformers/llm/engine/tools/llm_bench.cpp of MNN, as of November 2026 (`markdownPrinter`, `jsonAggregator`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from orchestrator.model.device import Api, Precision
from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import PrintedSample
from orchestrator.model.quantity import counted
from workers.engines.folder import (
    STAGE,
    TOKENS,
    Asked,
    FolderEngine,
    Told,
    Unread,
    WrongDevice,
    agreed,
    number,
    one_match,
)  # fmt: skip

BACKENDS = {Api.CPU: "cpu", Api.OPENCL: "opencl"}
PRECISIONS = {Precision.FP32: 1, Precision.FP16: 2}
"""`High` and `Low` of MNN."""
ROW = r"\|(?P<cells>.+)\| +(?P<test>(?:pp|tg)\d+) +\| +(?P<rate>\d+\.\d\d) ± \d+\.\d\d +\|.*"


class MnnLlmBench(FolderEngine):
    name = "mnn_llm_bench"
    apis = tuple(BACKENDS)
    precisions = tuple(PRECISIONS)
    programs = ("llm_bench",)
    formats = ("config.json",)
    axes = (STAGE, TOKENS)

    def arguments(self, asked: Asked) -> list[str]:
        if not asked.threads:
            raise Unsupported("llm_bench wants a number of threads", remedy="give `matrix.threads`")
        return [
            *("-m", asked.model, "-a", BACKENDS[asked.backend], "-c", str(PRECISIONS[asked.precision])),
            *("-t", str(asked.threads), "-rep", str(asked.samples)),
            *("-p", str(asked.prompt), "-n", str(asked.generated)),
            *("-load", "false", "-j", "/dev/stdout"),
        ]

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        if fallen := next((line.text for line in lines if "instead" in line.text and "backend" in line.text), ""):
            raise WrongDevice(f"{asked.backend} was asked for: {fallen[:200]}")
        line, row = _json(lines)
        agreed("backend", str(row.get("backend")).lower(), BACKENDS[asked.backend])
        agreed("threads, precision", (row.get("threads"), row.get("precision")),
               (asked.threads, PRECISIONS[asked.precision]))  # fmt: skip
        results = row.get("results")
        if not isinstance(results, list) or len(results) != 1 or not isinstance(results[0], dict):
            raise Unread("one test was asked for, and its JSON has not one")
        stage, tokens = asked.axes["stage"], asked.axes["tokens"]
        length = "prompt_len" if stage == "prefill" else "generate_len"
        agreed("type, tokens", (results[0].get("type"), results[0].get(length)), (stage, tokens))
        rate = number(str(results[0].get("tps")), "tps")
        table = one_match(ROW, lines, "the table's row")
        agreed("test", table["test"], f"{'pp' if stage == 'prefill' else 'tg'}{tokens}")
        if abs(number(table["rate"], "t/s") - rate) > 0.0051:
            raise Unread(f"the table says {table['rate']} tokens/s, and the JSON {rate:g}")
        sample = PrintedSample(round(tokens * 1e9 / rate), line.t_ns)
        return Told([sample], str(row["backend"]), threads=asked.threads, mean_of=asked.samples)


def _json(lines: Sequence[Line]) -> tuple[Line, dict[str, Any]]:
    found = [line for line in lines if line.stream == "stdout" and line.text.startswith("{")]
    if len(found) != 1:
        raise Unread(
            f"{counted(len(found), 'line')} of JSON, and one should be: llm_bench of this version is not known"
        )
    try:
        row = json.loads(found[0].text)
    except ValueError as e:
        raise Unread(f"its JSON is none: {e}") from e
    return found[0], row


ENGINE = MnnLlmBench
