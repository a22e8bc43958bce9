"""Drive PyTorch on the CPU: an exported program, run eagerly."""

from __future__ import annotations

from typing import Any

import torch


class Torch:
    copies_inside = True
    version = torch.__version__

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        torch.set_num_threads(settings["threads"])
        torch.set_num_interop_threads(1)
        self._module = torch.export.load(files["model.pt2"]).module()
        self.device, self.threads = "CPU", torch.get_num_threads()
        self.remarks: list[str] = []
        self._inputs, self._outputs = settings["inputs"], settings["outputs"]

    def put(self, inputs: dict[str, Any]) -> None:
        self._given = [torch.from_numpy(inputs[name]) for name in self._inputs]

    def run(self) -> None:
        with torch.inference_mode():
            self._found = self._module(*self._given)

    def get(self) -> dict[str, Any]:
        found = self._found
        if isinstance(found, dict) and set(found) == set(self._outputs):
            return {name: value.numpy() for name, value in found.items()}
        values = list(found.values()) if isinstance(found, dict) else found
        values = [values] if isinstance(values, torch.Tensor) else values
        return {name: value.numpy() for name, value in zip(self._outputs, values, strict=True)}


load = Torch
