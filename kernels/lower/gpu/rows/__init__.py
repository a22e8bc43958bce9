"""What a transformer does to rows (`kernels/passes/fuse_attention.py`, `fuse_rows.py`)."""

from .attention import lower_attention
from .norm import lower_row_norm

__all__ = ["lower_attention", "lower_row_norm"]
