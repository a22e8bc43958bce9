"""MNN: mnnconvert makes its file of the ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernels.ir.graph import Graph
from workers.engines.packaged import PackagedEngine


class Mnn(PackagedEngine):
    name = package = "mnn"
    reads = ("model.mnn",)

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:  # noqa: ARG002
        made = folder / "model.mnn"
        options = ("-f", "ONNX", "--modelFile", model.name, "--MNNModel", made.name, "--bizCode", "farm")
        self.convert(self.environment.python.with_name("mnnconvert"), options, folder, [made])
        return {made.name: made}


ENGINE = Mnn
