"""PyTorch: our graph as an exported program, as far as it has counterparts; or a program that a user exported."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

from kernels.ir.graph import Graph
from kernels.passes.fuse_residuals import fuse_residuals
from kernels.passes.simplified import simplified
from workers.engines.packaged import ROOT, PackagedEngine


class Torch(PackagedEngine):
    name = package = "torch"
    index = "https://download.pytorch.org/whl/cpu"
    reads = ("model.pt2",)

    def files(self, graph: Graph, model: Path, folder: Path) -> Mapping[str, Path]:  # noqa: ARG002
        made = folder / "model.pt2"
        (folder / "graph.pickle").write_bytes(pickle.dumps(fuse_residuals(simplified(graph))))
        self.convert(Path(__file__).with_name("convert.py"), (str(ROOT),), folder, [made])
        return {made.name: made}


ENGINE = Torch
