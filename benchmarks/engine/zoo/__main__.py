"""Networks that users of PyTorch and Keras bring: which run here, on which backend, how exactly, and how fast.

    python -m benchmarks.engine.zoo [--networks lstm,resnet18] [--exporters legacy] [--seconds 0.5] [-o raw.json]

Each network is exported in a process of its own. The reference is PyTorch or TensorFlow in double precision; an error
may be ten times onnxruntime's. With `--seconds`, times are taken: ours, onnxruntime's on the CPU, and PyTorch's CUDA
graph where there is CUDA. Exit status 1 where a result is wrong or a process failed; a refusal is no failure, its words
are in the raw file. Neither is among this project's packages: torch, torchvision, timm and onnxscript beside it; for
Keras tensorflow-cpu, tf-keras and tf2onnx.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.command_line import run_command
from benchmarks.engine.machine import describe_machine
from device_agent.build import build

BACKENDS = "cpu,opencl,vulkan"
LIMIT_S = 600


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.engine.zoo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = found.add_argument
    add("--networks", default="", help="names with commas; default: all that can be made with the packages installed")
    add(
        "--exporters", default="legacy,dynamo,tf2onnx",
        help="PyTorch's, and tf2onnx (tf2onnx18: opset 18), with commas; default: %(default)s",
    )  # fmt: skip
    add("--backends", default=BACKENDS, help="default: %(default)s")
    add("--batch", type=int, default=1)
    add("--seconds", type=float, default=0.0, help="of each timing; 0: no times")
    add("--jobs", type=int, default=1, help="networks at once; 1 where times are taken")
    add("--binary", type=Path, help="native agent; default: built for this machine")
    add("--one", action="store_true", help=argparse.SUPPRESS)
    add("-o", "--output", type=Path, help="raw results, as JSON")
    return found


def main() -> int:
    """Run the command; 1 where something is wrong."""
    options = parser().parse_args()
    if options.one:
        from .one import run_one

        with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
            row = run_one(
                options.networks, options.exporters, options.batch, options.backends.split(","), options.binary,
                Path(folder), options.seconds,
            )  # fmt: skip
        print("\n" + json.dumps(row))
        return 0
    wanted = options.networks.split(",") if options.networks else _names()
    binary = options.binary or build()
    tasks = [
        (name, exporter)
        for exporter in options.exporters.split(",")
        for name in wanted
        if exporter.startswith("tf2onnx") == name.startswith("keras")
    ]
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(1 if options.seconds else options.jobs) as pool:
        for done in as_completed([pool.submit(_in_a_process, *task, options, binary) for task in tasks]):
            rows.append(row := done.result())
            print(_line(row), flush=True)
            if options.output:
                options.output.write_text(json.dumps({"machine": describe_machine(), "rows": rows}, indent=1) + "\n")
    print(_summary(rows, options.backends.split(",")))
    return int(any("WRONG" in text or "FAULT" in text for row in rows for text in row["backends"].values()))


def _names() -> list[str]:
    """Return all networks that can be made with the packages that are here."""
    found, missing = [], []
    for module in ("modules", "keras_networks"):
        try:
            found += import_module(f".{module}", __package__).names()
        except ImportError as e:
            missing.append(str(e))
    if not found:
        parser().error(
            f"{', '.join(missing)}: install torch, torchvision, timm and onnxscript, or tensorflow-cpu, tf-keras and "
            "tf2onnx, beside this project's packages"
        )
    return found


def _in_a_process(name: str, exporter: str, options: argparse.Namespace, binary: Path) -> dict[str, Any]:
    words = ["--networks", name, "--exporters", exporter, "--batch", str(options.batch), "--backends", options.backends]
    words += ["--seconds", str(options.seconds), "--binary", str(binary), "--one"]
    row: dict[str, Any] = {"network": name, "exporter": exporter, "backends": {}}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.engine.zoo", *words], capture_output=True, text=True, timeout=LIMIT_S
        )
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return found
        reason = f"FAULT status {done.returncode}: {done.stderr.strip()[-400:]}"
    except subprocess.TimeoutExpired:
        reason = f"FAULT over {LIMIT_S} s"
    return row | {"backends": {"all": reason}}


def _line(row: dict[str, Any]) -> str:
    if failed := row.get("exporter_failed"):
        return f"{row['exporter']:7} {row['network']:32} the exporter failed: {failed[:80]}"
    cells = "  ".join(f"{backend} {text.splitlines()[0][:70]}" for backend, text in row["backends"].items())
    times = "  ".join(f"{key} {value:.3f}" for key, value in row.items() if key.endswith("_ms") and value)
    return f"{row['exporter']:7} {row['network']:32} {cells}  {times}"


def _summary(rows: list[dict[str, Any]], backends: list[str]) -> str:
    lines = []
    for exporter in dict.fromkeys(row["exporter"] for row in rows):
        mine = [row for row in rows if row["exporter"] == exporter and "exporter_failed" not in row]
        for backend in backends:
            right = sum(row["backends"].get(backend, "").startswith("ok") for row in mine)
            lines.append(f"{exporter}, {backend}: {right} of {len(mine)} run and are right")
    return "\n".join(lines)


if __name__ == "__main__":
    run_command(main)
