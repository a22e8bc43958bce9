"""ncnn: pnnx makes its files of the ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernels.ir.graph import Graph
from orchestrator.model.device import Api, Precision
from workers.engines.packaged import PackagedEngine


class Ncnn(PackagedEngine):
    name = package = "ncnn"
    reads = ("model.ncnn.param", "model.ncnn.bin")
    apis = (Api.CPU, Api.VULKAN)
    precisions = (Precision.FP32, Precision.FP16)

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:
        shapes = ",".join(f"[{','.join(map(str, graph.shapes[name]))}]f32" for name in graph.inputs)
        made = {name: folder / name for name in self.reads}
        pnnx = next(self.environment.folder.glob("lib/python*/site-packages/pnnx/pnnx"))  # its module needs torch
        self.convert(pnnx, (model.name, f"inputshape={shapes}", "fp16=0"), folder, list(made.values()))
        return made


ENGINE = Ncnn
