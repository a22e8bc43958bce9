"""Drive LiteRT (TensorFlow Lite) on the CPU, with XNNPACK as it comes. Its images have their channels last."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter


class LiteRt:
    copies_inside = True
    version = version("ai-edge-litert")

    def __init__(self, files: dict[str, str], settings: dict[str, Any]) -> None:
        self._interpreter = Interpreter(files["model.tflite"], num_threads=settings["threads"])
        self._interpreter.allocate_tensors()
        self.device, self.threads = "CPU", settings["threads"]
        self.remarks: list[str] = []
        self._inputs, self._outputs = settings["inputs"], settings["outputs"]
        self._shapes, self._is_own = settings.get("shapes", {}), settings.get("own", False)
        self._places = self._in_order(self._interpreter.get_input_details(), self._inputs)
        self._found = self._in_order(self._interpreter.get_output_details(), self._outputs)

    def _in_order(self, ports: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
        """The file's ports as the model has them: by their names where those are the same, else as they come."""
        if len(ports) != len(names):
            raise RuntimeError(f"the file has {len(ports)} of what the model has {len(names)}: {', '.join(names)}")
        named = {port["name"]: port for port in ports}
        return [named[name] for name in names] if named.keys() == set(names) else ports

    def _is_turned(self, name: str, port: dict[str, Any]) -> bool:
        """Return whether a port has its channels last; a user's file may have them where the model has them."""
        shape, own = list(self._shapes.get(name, ())), port["shape"].tolist()
        if not self._is_own:
            return len(own) == 4
        if own == shape:
            return False
        if own != [*shape[:1], *shape[2:], *shape[1:2]]:
            raise RuntimeError(f"{name} is {shape} in the model and {own} in the file, which is neither the same nor "
                               "with its channels last")  # fmt: skip
        return True

    def put(self, inputs: dict[str, Any]) -> None:
        self._given = []
        for name, port in zip(self._inputs, self._places, strict=True):
            array = np.moveaxis(inputs[name], 1, -1) if self._is_turned(name, port) else inputs[name]
            self._given.append((port["index"], np.ascontiguousarray(array)))

    def run(self) -> None:
        for place, array in self._given:
            self._interpreter.set_tensor(place, array)
        self._interpreter.invoke()

    def get(self) -> dict[str, Any]:
        found = {}
        for name, port in zip(self._outputs, self._found, strict=True):
            array = self._interpreter.get_tensor(port["index"])
            found[name] = np.moveaxis(array, -1, 1) if self._is_turned(name, port) else array
        return found


load = LiteRt
