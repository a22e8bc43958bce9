"""Operations of a transformer on rows (`kernels/passes/rows/`), and what is best in each."""

from .attention import lower_attention
from .norm import lower_row_norm
from .packed_rows import joined_copies, lower_gather
from .sorting import lower_sort, lower_suppress
from .token_attention import lower_append, lower_attend
from .turning import lower_transpose
