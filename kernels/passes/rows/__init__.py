"""Passes for what works on rows: attention, layer normalisations, and moves that leave rows whole."""

from .compose_moves import compose_moves
from .fuse_attention import ATTENTION_LOCAL_BYTES, MOST_DEEP, fuse_attention
from .fuse_rows import fuse_dense_endings, fuse_norm_endings, fuse_row_norms
from .normed_rows import normed_rows
from .rows_in_place import rows_in_place

__all__ = [
    "ATTENTION_LOCAL_BYTES",
    "MOST_DEEP",
    "compose_moves",
    "fuse_attention",
    "fuse_dense_endings",
    "fuse_norm_endings",
    "fuse_row_norms",
    "normed_rows",
    "rows_in_place",
]
