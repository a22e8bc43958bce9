"""LiteRT: its file is written from our graph, as far as the writer has the operators."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from kernels.ir.graph import Graph
from kernels.passes.simplified import simplified
from workers.engines.packaged import ROOT, PackagedEngine


class LiteRt(PackagedEngine):
    name = "litert"
    package = "ai-edge-litert"
    reads = ("model.tflite",)

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:  # noqa: ARG002
        made = folder / "model.tflite"
        (folder / "graph.pickle").write_bytes(pickle.dumps(simplified(graph)))
        script = Path(__file__).with_name("convert.py")
        self.convert(script, (str(ROOT),), folder, [made])
        return {made.name: made}


ENGINE = LiteRt
