"""Networks in 8 bits on the CPU beside fp32, ours and onnxruntime's, in turns: time, and how far outputs are from fp64.

    python -m benchmarks.engine.int8 --networks resnet50,mobilenet_v2 --threads 2 -o raw.json

Models in 8 bits: `farm quantize`'s (QDQ nodes at the inputs of layers), and onnxruntime's own (`quantize_static`, QDQ,
weights by channels), both calibrated by the same random images. Weights are random too, so errors say which arithmetic
it is, not what a trained network loses. Every turn is a process. Printed are the least of its turns' medians, and of
the processor's time of an inference, of all threads.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime import quantization

from benchmarks.command_line import run_command
from benchmarks.engine.agent_process import Agent
from benchmarks.engine.case import Case, make_case
from benchmarks.engine.machine import describe_machine
from device_agent.build import binary
from kernels.compile import compile_graph
from kernels.frontend.load import random_inputs
from kernels.frontend.onnx import load_onnx
from kernels.frontend.onnx.reading.model_file import read_model
from kernels.frontend.quantize import Quantizer, ranges
from kernels.options import Limits, Options, Precision
from kernels.reference import evaluate

Arrays = Mapping[str, np.ndarray[Any, Any]]
Turn = Callable[[], tuple[list[float], float, np.ndarray[Any, Any]]]
"""Samples in ms, the processor's ms of an inference, the output."""
CALIBRATION = 2


class _Calibration(quantization.CalibrationDataReader):
    def __init__(self, inputs: list[dict[str, Any]]) -> None:
        self._rest = list(inputs)

    def get_next(self) -> dict[str, Any] | None:  # type: ignore[override]
        return self._rest.pop() if self._rest else None


def quantized(case: Case, folder: Path) -> dict[str, Path]:
    """The case's model in 8 bits, by each tool."""
    images = [random_inputs(case.graph, 1000 + index) for index in range(CALIBRATION)]
    ours, theirs = folder / "ours.onnx", folder / "theirs.onnx"
    graph = load_onnx(case.onnx)
    Quantizer(
        read_model(case.onnx), ranges(evaluate(graph, image, dtype=np.float32, keep=True) for image in images)
    ).write(ours)
    logging.disable(logging.WARNING)  # its advice
    quantization.quantize_static(
        case.onnx, theirs, _Calibration(images), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
    )  # fmt: skip
    return {"farm quantize": ours, "quantize_static": theirs}


def of_ours(model: Path, precision: Precision, inputs: Arrays, threads: int, samples: int, folder: Path) -> Turn:
    bundle = compile_graph(load_onnx(model), Options("cpu", precision, threads=threads), Limits())
    plan = folder / f"plan-{model.stem}-{precision}"
    bundle.write(plan)
    agent = Agent(binary(), folder / "cache")

    def spent(count: int) -> tuple[Any, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = agent.run_stored(bundle.plan, plan, inputs, warmup=1, samples=count, threads=threads)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ran, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def turn() -> tuple[list[float], float, np.ndarray[Any, Any]]:
        _, few = spent(1)
        ran, many = spent(1 + samples)
        return ran.samples_ms, 1e3 * (many - few) / samples, next(iter(ran.outputs.values())).reshape(-1)

    return turn


def of_onnxruntime(model: Path, file: Path, threads: int, samples: int) -> Turn:
    def turn() -> tuple[list[float], float, np.ndarray[Any, Any]]:
        argv = [sys.executable, "-m", __spec__.name, "--one", str(model), str(file), str(threads), str(samples)]
        found = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300).stdout)
        return found["samples_ms"], found["processor_ms"], np.asarray(found["output"])

    return turn


def one(model: str, file: str, threads: int, samples: int) -> None:
    """A turn of onnxruntime, as JSON on the standard output."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs, spans = dict(np.load(file)), []
    session.run(None, inputs)
    began = time.process_time()
    for _ in range(samples):
        start = time.monotonic()
        output = session.run(None, inputs)[0]
        spans.append(1e3 * (time.monotonic() - start))
    spent = 1e3 * (time.process_time() - began) / samples
    print(json.dumps({"samples_ms": spans, "processor_ms": spent, "output": output.reshape(-1).tolist()}))


def measured(network: str, threads: int, samples: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each contender."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case = make_case(network, folder)
        models, inputs = quantized(case, folder), case.inputs[0]
        turns: dict[str, Turn] = {
            "ours fp32": of_ours(case.onnx, "fp32", inputs, threads, samples, folder),
            "ours int8": of_ours(case.onnx, "int8", inputs, threads, samples, folder),
            "onnxruntime fp32": of_onnxruntime(case.onnx, case.files[0], threads, samples),
        }
        for tool, model in models.items():
            turns[f"ours int8, {tool}"] = of_ours(model, "int8", inputs, threads, samples, folder)
            turns[f"onnxruntime, {tool}"] = of_onnxruntime(model, case.files[0], threads, samples)
        found: dict[str, list[tuple[list[float], float, np.ndarray[Any, Any]]]] = {label: [] for label in turns}
        for number in range(rounds):
            for label in list(turns)[:: -1 if number % 2 else 1]:
                found[label].append(turns[label]())
        wanted = next(iter(case.wanted[0].values())).reshape(-1)
    largest = float(np.abs(wanted).max())
    return [
        {
            "network": network, "contender": label, "threads": threads, "samples_ms": [each[0] for each in some],
            "processor_ms": [each[1] for each in some], "error": float(np.abs(some[0][2] - wanted).max()) / largest,
        }
        for label, some in found.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="squeezenet_v1_1,mobilenet_v2,resnet50")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        model, file, threads, samples = arguments.one
        return one(model, file, int(threads), int(samples))
    rows: list[dict[str, Any]] = []
    for network in arguments.networks.split(","):
        rows += measured(network, arguments.threads, arguments.samples, arguments.rounds)
        for row in (each for each in rows if each["network"] == network):
            least, spent = min(map(median, row["samples_ms"])), min(row["processor_ms"])
            print(f"{network:18} {row['contender']:30} {least:8.2f} ms {spent:8.2f} processor {row['error']:9.2g}")
        if arguments.out:
            kept = {"machine": describe_machine(), "load": os.getloadavg(), "rows": rows}
            arguments.out.write_text(json.dumps(kept, indent=1) + "\n")
    return None


if __name__ == "__main__":
    run_command(main)
