"""TensorFlow Lite, and LiteRT, by their benchmark_model: the mean of a block's runs.

Formats: tensorflow/lite/tools/benchmark (benchmark_model.cc, benchmark_tflite_model.cc), tensorflow/core/util/
stats_calculator.h, and litert/tools/benchmark_litert_model.cc, which prints by the same class.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.model.device import Api, Precision
from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import Printed
from orchestrator.model.quantity import counted
from workers.engines.folder import (
    Asked,
    FolderEngine,
    Told,
    Unread,
    WrongDevice,
    agreed,
    delegates,
    number,
    one_match,
)  # fmt: skip

SAID = r"(?:INFO: )?"
ROUNDS = SAID + r"count=(?P<count>\d+)(?: first=(?P<first>\d+))? curr=(?P<curr>\d+)(?:\(all same\)|(?P<rest> .*))?"
MEAN = Printed(regex=r"Inference timings in us: .*Inference \(avg\): (?P<sample>[0-9.e+]+)$", unit="us")
SUMMARY = SAID + (
    r"Inference timings in us: Init: [0-9.e+]+, First inference: (?P<first>[0-9.e+]+), "
    r"Warmup \(avg\): (?P<warmup>[0-9.e+]+), Inference \(avg\): (?P<mean>[0-9.e+]+)"
)
NAMES = {"opencl": "GPU", "nnapi": "NNAPI", "xnnpack": "XNNPACK"}
LONG_S = 100_000


class BenchmarkModel(FolderEngine):
    name = "benchmark_model"
    apis = (Api.CPU, Api.OPENCL)
    precisions = (Precision.FP32, Precision.FP16)
    programs = ("benchmark_model", "android_aarch64_benchmark_model", "android_arm_benchmark_model",
                "linux_x86-64_benchmark_model", "benchmark_litert_model")  # fmt: skip
    formats = (".tflite",)
    axes = (delegates("none", "xnnpack", "nnapi"),)

    def arguments(self, asked: Asked) -> list[str]:
        half = str(asked.precision is Precision.FP16).lower()
        delegate = asked.axes["delegate"]
        gpu = asked.backend is Api.OPENCL
        if (gpu and delegate != "auto") or (half == "true" and delegate in ("none", "nnapi")):
            raise Unsupported(f"benchmark_model has no {asked.precision} on {asked.backend} with delegate {delegate}",
                              remedy="leave the configuration out")  # fmt: skip
        by = {
            "auto": (), "none": ("--use_xnnpack=false",), "xnnpack": ("--use_xnnpack=true",),
            "nnapi": ("--use_nnapi=true", "--require_full_delegation=true"),
        }[delegate]  # fmt: skip
        if gpu:
            by = ("--use_gpu=true", "--gpu_backend=cl", "--require_full_delegation=true",
                  f"--gpu_precision_loss_allowed={half}")  # fmt: skip
        elif half == "true":
            by = (*by, "--xnnpack_force_fp16=true")
        return [
            *(f"--graph={asked.model}", f"--num_runs={asked.samples}", "--min_secs=0", f"--max_secs={LONG_S}"),
            *(f"--warmup_runs={max(1, asked.warmup)}", "--warmup_min_secs=0"),
            *((f"--num_threads={asked.threads}",) if asked.threads else ()),
            *by,
        ]

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        rounds = [found for line in lines if (found := re.fullmatch(ROUNDS, line.text.rstrip()))]
        if len(rounds) != 2:
            raise Unread(
                f"{counted(len(rounds), 'line tells', 'lines tell')} counts, and two should: of warm-up and runs"
            )
        summary = one_match(SUMMARY, lines, "the summary")
        agreed("runs", int(rounds[1]["count"]), asked.samples)
        for found, mean, what in ((rounds[0], "warmup", "warm-up"), (rounds[1], "mean", "runs")):
            agreed(f"mean of the {what}", _mean(found), number(summary[mean], what), within=1e-5)
        first = rounds[0]["first"] or rounds[0]["curr"]
        agreed("first inference", float(first), number(summary["first"], "first inference"), within=1e-5)
        asked_threads = [int(count) for line in lines for count in re.findall(r"Num threads: \[(-?\d+)\]", line.text)]
        if asked.threads:
            agreed("Num threads", asked_threads, [asked.threads])
        version = next((found[1] for line in lines if (found := re.search(r"Version : ([\w.+-]+)", line.text))), "")
        return Told(
            MEAN.samples(lines), _device(lines, asked), version=version, threads=asked.threads,
            mean_of=asked.samples,
        )  # fmt: skip


def _mean(found: re.Match[str]) -> float:
    """The mean of a round; where it is told in full it lies between the extremes. Raises Unread."""
    told = dict(re.findall(r"(\w+)=([0-9.e+]+)", found["rest"] or ""))
    if "avg" not in told:
        if int(found["count"]) > 1 and "(all same)" not in found[0]:
            raise Unread("a round tells no mean")
        return number(found["curr"], "a round")
    least, mean, most = (number(told.get(name, ""), name) for name in ("min", "avg", "max"))
    if not least * 0.999 <= mean <= most * 1.001:
        raise Unread(f"the mean {told['avg']} is not between {told['min']} and {told['max']}")
    return mean


def _device(lines: Sequence[Line], asked: Asked) -> str:
    """Raises WrongDevice where a delegate did not take the whole model."""
    delegate = "opencl" if asked.backend is Api.OPENCL else asked.axes["delegate"]
    said = [line.text for line in lines if "delegate" in line.text and "model graph will" in line.text]
    if delegate in ("auto", "none"):
        if other := [text for text in said if "XNNPACK" not in text]:
            raise WrongDevice(f"the CPU was asked for: {other[0][:200]}")
        return "CPU"
    name = NAMES[delegate]
    whole = [text for text in said if f"{name} delegate" in text and "will be completely executed" in text]
    litert = any("Loading model from:" in line.text for line in lines)  # it aborts where the CPU would have to help
    part = delegate == "xnnpack" and any(f"{name} delegate" in text and "partially" in text for text in said)
    if not (whole or part or (litert and delegate != "xnnpack")):
        raise WrongDevice(f"{name} was asked for, and it does not say that {name} ran the whole model")
    return f"{name} delegate"


ENGINE = BenchmarkModel
