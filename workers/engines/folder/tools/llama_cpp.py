"""llama.cpp by its llama-bench: one test a block, raw samples in JSON.

Format: tools/llama-bench/llama-bench.cpp of llama.cpp, as of build 11434 (`jsonl_printer`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from orchestrator.model.device import Api, EngineAxis
from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import Printed
from orchestrator.model.quantity import counted
from workers.engines.folder import STAGE, TOKENS, Asked, FolderEngine, Told, Unread, WrongDevice, agreed

SAMPLES = Printed(path="samples_ns.*", unit="ns", stream="stdout")
GPU = {Api.VULKAN: "Vulkan", Api.OPENCL: "OpenCL"}
ATTENTION = {"on": 1, "off": 0}
ALL_LAYERS = 99
PLAIN = ("f16", "bf16")
"""Types of a cache that attention without blocks reads."""


class LlamaCpp(FolderEngine):
    name = "llama.cpp"
    apis = tuple(Api)
    programs = ("llama-bench",)
    formats = (".gguf",)
    axes = (
        STAGE,
        TOKENS,
        EngineAxis(
            name="context_tokens", help="tokens that the cache holds before a sample", default=0, bounds=(0, 1 << 24)
        ),
        EngineAxis(
            name="kv_type",
            help="the type of cached keys and values",
            default="f16",
            words=("f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"),
        ),
        EngineAxis(
            name="flash_attention",
            help="whether attention is computed by blocks; `auto`: where the backend can",
            default="auto",
            words=("auto", "on", "off"),
        ),
    )

    def arguments(self, asked: Asked) -> list[str]:
        axes = asked.axes
        if axes["flash_attention"] == "off" and axes["kv_type"] not in PLAIN:
            raise Unsupported(f"llama.cpp caches {axes['kv_type']} with flash attention alone",
                              remedy="leave the configuration out")  # fmt: skip
        return [
            *("-m", asked.model, "-o", "jsonl", "-r", str(asked.samples)),
            *("-p", str(asked.prompt), "-n", str(asked.generated), "-d", str(axes["context_tokens"])),
            *("-ctk", axes["kv_type"], "-ctv", axes["kv_type"]),
            *(("-ngl", "0", "-dev", "none") if asked.backend is Api.CPU else ("-ngl", str(ALL_LAYERS))),
            *(("-t", str(asked.threads)) if asked.threads else ()),
            *(("-fa", axes["flash_attention"]) if axes["flash_attention"] in ATTENTION else ()),
            *(("--no-warmup",) if asked.warmup == 0 else ()),
        ]

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        rows = [line for line in lines if line.stream == "stdout" and line.text.lstrip().startswith("{")]
        if len(rows) != 1:
            raise Unread(f"{counted(len(rows), 'test is', 'tests are')} told in JSON, and one was asked for")
        samples, row = SAMPLES.samples(rows), _row(rows[0].text)
        axes = asked.axes
        wanted = {
            "n_prompt": asked.prompt, "n_gen": asked.generated, "n_depth": axes["context_tokens"],
            "type_k": axes["kv_type"], "type_v": axes["kv_type"],
            **({"n_threads": asked.threads} if asked.threads else {}),
        }  # fmt: skip
        for name, value in wanted.items():
            agreed(name, row.get(name), value)
        if axes["flash_attention"] in ATTENTION:
            agreed("flash_attn", int(row.get("flash_attn", -1)), ATTENTION[axes["flash_attention"]])
        mean_ns = fmean(each.duration_ns for each in samples)
        agreed("avg_ns", row.get("avg_ns"), mean_ns, within=1e-6, rounded=1)  # it is cut to whole ns
        rates = row.get("samples_ts")
        if not isinstance(rates, list) or len(rates) != len(samples):
            raise Unread("samples_ts: there is not one for each sample")
        for rate, each in zip(rates, samples, strict=True):
            agreed("samples_ts", rate, axes["tokens"] * 1e9 / each.duration_ns, within=1e-4)
        return Told(
            samples, _device(row, asked), version=f"{row.get('build_number')} ({row.get('build_commit')})",
            threads=int(row["n_threads"]),
        )  # fmt: skip


def _row(text: str) -> dict[str, Any]:
    row = json.loads(text)
    lacking = {"build_commit", "build_number", "backends", "n_threads", "n_gpu_layers", "avg_ns"} - row.keys()
    if lacking:
        raise Unread(f"the test lacks {', '.join(sorted(lacking))}: llama-bench of this version is not known")
    if not isinstance(row["n_threads"], int) or row["n_threads"] < 1:
        raise Unread(f"n_threads: {str(row['n_threads'])[:40]} is none")
    return dict(row)


def _device(row: dict[str, Any], asked: Asked) -> str:
    """Raises WrongDevice where it is not, or may not be, the one that was asked for."""
    if asked.backend is Api.CPU:
        agreed("n_gpu_layers", row["n_gpu_layers"], 0)
        return str(row.get("cpu_info") or "CPU")[:200]
    agreed("n_gpu_layers", row["n_gpu_layers"], ALL_LAYERS)
    built = {name for name in str(row["backends"]).split(",") if name != "BLAS"}
    if built != {GPU[asked.backend]} or not row.get("gpu_info"):
        raise WrongDevice(
            f"{asked.backend} was asked for, and it has the backends {row['backends']} and the GPU "
            f"{str(row.get('gpu_info') or 'none')[:80]}: a build for one backend shows what ran"
        )
    return str(row["gpu_info"])[:200]


ENGINE = LlamaCpp
