"""ncnn: pnnx makes its files of the ONNX model."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kernels.ir.graph import Graph
from orchestrator.model.device import Api, Precision
from orchestrator.model.errors import Unsupported
from workers.engines.packaged import PackagedEngine

SAID = 600


class Ncnn(PackagedEngine):
    name = "ncnn"
    apis = (Api.CPU, Api.VULKAN)
    precisions = (Precision.FP32, Precision.FP16)

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:
        shapes = ",".join(f"[{','.join(map(str, graph.shapes[name]))}]f32" for name in graph.inputs)
        pnnx = next(self.environment.folder.glob("lib/python*/site-packages/pnnx/pnnx"))  # its module needs torch
        argv = [str(pnnx), model.name, f"inputshape={shapes}", "fp16=0"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        made = {name: folder / name for name in ("model.ncnn.param", "model.ncnn.bin")}
        if done.returncode != 0 or not all(path.is_file() for path in made.values()):
            said = " ".join((done.stderr + done.stdout).split())[-SAID:]
            raise Unsupported(f"pnnx makes no ncnn model of it: {said}", remedy="leave engine ncnn out for this model")
        return made


ENGINE = Ncnn
