"""Write a graph as an exported program of PyTorch, in the engine's own Python: `convert.py ROOT`."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import torch

if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    from torch_graph import exported  # type: ignore[import-not-found]

    graph = pickle.loads(Path("graph.pickle").read_bytes())  # noqa: S301 (the engine has just written it)
    torch.export.save(exported(graph), "model.pt2")
