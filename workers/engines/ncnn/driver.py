"""Drive ncnn."""

from __future__ import annotations

from typing import Any

import ncnn
import numpy as np

HALF = ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_packed", "use_bf16_storage")
WITHOUT_VULKAN = {"Input", "Split", "Noop"}


class Ncnn:
    copies_inside = True
    version = ncnn.__version__

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        self._net = ncnn.Net()
        options = self._net.opt
        options.num_threads = settings["threads"]
        for name in HALF:
            if hasattr(options, name):
                setattr(options, name, settings["precision"] == "fp16" and "bf16" not in name)
        self.device, self.threads = "CPU", settings["threads"]
        self.remarks: list[str] = []
        options.use_vulkan_compute = settings["backend"] == "vulkan"
        if options.use_vulkan_compute:
            index, self.device = vulkan_device(settings["device"])
            self._net.set_vulkan_device(index)
            self.threads = 0
        if self._net.load_param(files["model.ncnn.param"]) or self._net.load_model(files["model.ncnn.bin"]):
            raise RuntimeError("ncnn refuses the model")
        if settings["backend"] == "vulkan":
            self._check_vulkan()
        self._names = dict(zip(settings["outputs"], self._net.output_names(), strict=True))

    def _check_vulkan(self) -> None:
        """ncnn runs what it cannot do with Vulkan on the CPU, without a word."""
        if not self._net.opt.use_vulkan_compute:
            raise RuntimeError("ncnn turned Vulkan off by itself")
        aside = sorted({layer.type for layer in self._net.layers() if not layer.support_vulkan} - WITHOUT_VULKAN)
        if "Convolution" in aside:
            raise RuntimeError("ncnn computes the convolutions on the CPU")
        self.remarks += [f"on the CPU: {', '.join(aside)}"] if aside else []

    def put(self, inputs: dict[str, Any]) -> None:
        """A Mat around an array has unaligned channels, which ncnn's Vulkan reads wrongly; its clone aligns them."""
        if any(len(array) != 1 for array in inputs.values()):
            raise RuntimeError("ncnn's models have no batch: each input's first dimension is 1")
        arrays = (np.ascontiguousarray(array[0], np.float32) for array in inputs.values())
        mats = [ncnn.Mat(array).clone() for array in arrays]
        self._inputs = dict(zip(self._net.input_names(), mats, strict=True))

    def run(self) -> None:
        with self._net.create_extractor() as extractor:
            for name, mat in self._inputs.items():
                extractor.input(name, mat)
            found = {}
            for name, blob in self._names.items():
                status, found[name] = extractor.extract(blob)
                if status != 0:
                    raise RuntimeError(f"ncnn's extract came back with {status}")
        self._outputs = found

    def get(self) -> dict[str, Any]:
        return {name: np.array(mat) for name, mat in self._outputs.items()}


def vulkan_device(wanted: str) -> tuple[int, str]:
    """Index and name of the device with these words in its name; without words a real GPU, if there is one."""
    names = [ncnn.get_gpu_info(index).device_name() for index in range(ncnn.get_gpu_count())]
    fitting = [index for index, name in enumerate(names) if wanted.lower() in name.lower()]
    if not fitting:
        raise RuntimeError(f"ncnn finds no Vulkan device {wanted!r}; it finds: {', '.join(names) or 'none'}")
    index = next((index for index in fitting if "llvmpipe" not in names[index]), fitting[0])
    return index, names[index]


load = Ncnn
