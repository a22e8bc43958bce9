"""Our graph in PyTorch: as the engine's program, in double precision as a reference, and as a peer on CUDA."""

from .elements import Unsupported
from .graph import TorchGraph, evaluate_single, evaluate_stored_in_half, evaluate_wide, exported, in_layout

__all__ = [
    "TorchGraph", "Unsupported", "evaluate_single", "evaluate_stored_in_half", "evaluate_wide", "exported", "in_layout",
]  # fmt: skip
