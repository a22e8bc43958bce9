"""Passes for what works on rows: attention, layer normalisations, moves that leave rows whole, which rows are read."""

from .cached_rows import cached_rows
from .compose_moves import compose_moves
from .early_slices import early_slices
from .free_rows import free_rows
from .fuse_attention import ATTENTION_LOCAL_BYTES, MOST_DEEP, fuse_attention
from .fuse_rows import fuse_dense_endings, fuse_dense_joins, fuse_norm_endings
from .row_norms import fuse_row_norms
from .rows_in_place import rows_in_place
