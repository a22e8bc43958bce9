"""Operations of a transformer on rows (`kernels/passes/rows/`), and what is best in each."""

from .attention import lower_attention
from .cached import lower_cached
from .norm import lower_row_norm
from .sorting import lower_sort, lower_suppress
from .turning import lower_transpose

__all__ = ["lower_attention", "lower_cached", "lower_row_norm", "lower_sort", "lower_suppress", "lower_transpose"]
