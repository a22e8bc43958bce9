"""Contenders by name, and which of them can start here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from kernels.options import Backend, Precision


@dataclass(frozen=True)
class Entry:
    """A contender that can be asked for."""

    kind: Literal["ours", "cpu", "gpu"]
    module: str
    """Backend of ours, or module below `peers`."""
    packages: tuple[str, ...] = ()
    """The packages that must be installed."""
    variables: tuple[tuple[str, str], ...] = ()
    """The variables of the environment."""
    onnx: bool = False
    """True if it reads the network's ONNX file."""
    precisions: tuple[Precision, ...] = ("fp32",)

    @property
    def on_cpu(self) -> bool:
        """True if it has a row for each number of threads."""
        return self.kind == "cpu" or self.module == "cpu"

    @property
    def missing(self) -> list[str]:
        """Packages that are not there."""
        return [name for name in self.packages if find_spec(name) is None]


HALVES: tuple[Precision, ...] = ("fp32", "fp16")

CONTENDERS: dict[str, Entry] = {
    "ours OpenCL": Entry("ours", "opencl", precisions=HALVES),
    "ours Vulkan": Entry("ours", "vulkan", precisions=HALVES),
    "ours CPU": Entry("ours", "cpu"),
    "ncnn Vulkan": Entry("gpu", "ncnn_vulkan", ("ncnn", "pnnx"), onnx=True),
    "ncnn CPU": Entry("cpu", "ncnn_cpu", ("ncnn", "pnnx"), onnx=True),
    "onnxruntime CPU": Entry("cpu", "ort", ("onnxruntime",), onnx=True),
    "OpenVINO CPU": Entry("cpu", "openvino_cpu", ("openvino",), onnx=True),
    "LiteRT CPU": Entry("cpu", "litert_cpu", ("ai_edge_litert",)),
    "tinygrad OpenCL": Entry("gpu", "tinygrad_cl", ("tinygrad",), (("DEV", "CL"),), onnx=True),
    "torch CPU": Entry("cpu", "torch_cpu", ("torch",)),
    "torch CUDA": Entry("gpu", "torch_cuda", ("torch",), precisions=HALVES),
}

BACKENDS: dict[str, Backend] = {"opencl": "opencl", "vulkan": "vulkan", "cpu": "cpu"}


def find(names: str) -> list[str]:
    """Names from a comma-separated text, each a contender or a part of some; empty: all. Raises KeyError."""
    if not names:
        return list(CONTENDERS)
    found: list[str] = []
    for wanted in names.split(","):
        fitting = [name for name in CONTENDERS if wanted.strip().lower() in name.lower()]
        if not fitting:
            raise KeyError(f"no contender is called {wanted.strip()!r}; there are: {', '.join(CONTENDERS)}")
        found += fitting
    return list(dict.fromkeys(found))
