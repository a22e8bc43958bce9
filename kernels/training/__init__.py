"""Training as plans: a graph's gradients as steps, losses, steps of descent, and the loops around them."""

from .checkpoint import read_checkpoint, sealed, trained, unsealed
from .options import TrainingOptions
from .program import LABELS, compile_training

__all__ = ["LABELS", "TrainingOptions", "compile_training", "read_checkpoint", "sealed", "trained", "unsealed"]
