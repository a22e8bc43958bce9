"""ncnn on the CPU and through Vulkan, in fp32: its half precision and bfloat16 options are off."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import ncnn
import numpy as np

from benchmarks.engine.ncnn_files import Files, write_ncnn
from kernels.frontend.load import load_workload

from .engine import Arrays, Model, PeerError

_HALF = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_packed", "use_bf16_storage")

Prepared = tuple[Files, dict[str, tuple[int, ...]]]
"""ncnn's files, and the shapes of the graph's tensors."""


class _Ncnn:
    copies_inside = True
    version = version("ncnn")

    def __init__(self, model: Model, prepared: Prepared, *, vulkan: bool) -> None:
        files, self._shapes = prepared
        self._net = ncnn.Net()
        self._net.opt.num_threads = model.threads
        for name in _HALF:
            if hasattr(self._net.opt, name):
                setattr(self._net.opt, name, False)
        self._net.opt.use_vulkan_compute = vulkan
        self.device = f"CPU, {model.threads} threads"
        self.remarks: list[str] = []
        if vulkan:
            index, self.device = _vulkan_device(model.device)
            self._net.set_vulkan_device(index)
        if self._net.load_param(str(files.param)) != 0 or self._net.load_model(str(files.weights)) != 0:
            raise PeerError("ncnn refuses the model")
        if vulkan:
            self._check_vulkan()
        self._ports = files
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}

    def _check_vulkan(self) -> None:
        """ncnn runs what it cannot do with Vulkan on the CPU, without a word."""
        if not self._net.opt.use_vulkan_compute:
            raise PeerError("ncnn turned Vulkan off by itself")
        free = {"Input", "Split"}
        layers = self._net.layers()
        aside = sorted({layer.type for layer in layers if not layer.support_vulkan} - free)
        if "Convolution" in aside:
            raise PeerError("ncnn computes the convolutions on the CPU")
        self.remarks += [f"on the CPU: {', '.join(aside)}"] if aside else []

    def put(self, inputs: Arrays) -> None:
        """A Mat around an array has unaligned channels, which ncnn's Vulkan reads wrongly; its clone aligns them."""
        arrays = {name: np.ascontiguousarray(array[0]) for name, array in inputs.items()}
        self._inputs = {name: ncnn.Mat(array).clone() for name, array in arrays.items()}

    def run(self) -> None:
        with self._net.create_extractor() as extractor:
            for name, blob in self._ports.inputs.items():
                extractor.input(blob, self._inputs[name])
            found = {}
            for name, blob in self._ports.outputs.items():
                status, found[name] = extractor.extract(blob)
                if status != 0:
                    raise PeerError(f"ncnn's extract came back with {status}")
        self._outputs = found

    def get(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: np.array(mat).reshape(self._shapes[name]) for name, mat in self._outputs.items()}


def _vulkan_device(wanted: str) -> tuple[int, str]:
    """Index and name of the device with these words in its name; without words a real GPU, if there is one."""
    names = [ncnn.get_gpu_info(index).device_name() for index in range(ncnn.get_gpu_count())]
    fitting = [index for index, name in enumerate(names) if wanted.lower() in name.lower()]
    if not fitting:
        raise PeerError(f"ncnn finds no Vulkan device with {wanted!r} in its name; it finds: {', '.join(names) or '-'}")
    real = [index for index in fitting if "llvmpipe" not in names[index]]
    index = (real or fitting)[0]
    return index, names[index]


def prepare(model: Model) -> Prepared:
    """Write ncnn's files, once."""
    graph = load_workload(network=model.network, onnx=None, seed=model.seed, batch=model.batch)
    return write_ncnn(graph, model.folder), graph.shapes


def load_cpu(model: Model, prepared: Prepared) -> _Ncnn:
    """Return an `engine.Engine`."""
    return _Ncnn(model, prepared, vulkan=False)


def load_vulkan(model: Model, prepared: Prepared) -> _Ncnn:
    """Return an `engine.Engine`."""
    return _Ncnn(model, prepared, vulkan=True)
