"""The facts that a result must name: machine, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("numpy", "onnx", "onnxruntime", "ncnn", "torch", "tinygrad", "ai-edge-litert", "pyopencl")

_GPU = "name,driver_version,clocks.max.sm,power.limit"


def describe_machine() -> dict[str, str | int | float | list[str] | None]:
    """Machine and software, as far as they can be found out."""
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average_1min": os.getloadavg()[0],
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "gpus": _said(
            "nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"
        ),
        "commit": " ".join(_said("git", "rev-parse", "--short=12", "HEAD")) or None,
        "changed_files": len(_said("git", "status", "--porcelain", "--untracked-files=no")),
        "packages": [f"{name} {found}" for name in _PACKAGES if (found := package_version(name))],
    }


def package_version(name: str) -> str | None:
    """None where the package is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _said(*argv: str) -> list[str]:
    """Lines of a command's output; none where it does not run."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
