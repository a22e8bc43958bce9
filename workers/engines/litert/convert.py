"""Write a graph as a .tflite file, in the engine's own Python, which has the format's classes: `convert.py ROOT`."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    from tflite_file import write_tflite  # type: ignore[import-not-found]

    graph = pickle.loads(Path("graph.pickle").read_bytes())  # noqa: S301 (the engine has just written it)
    write_tflite(graph, Path("model.tflite"))
