"""Which rows are computed, and who may write them in any order."""

from .early_slices import early_slices
from .free_rows import free_rows

__all__ = ["early_slices", "free_rows"]
