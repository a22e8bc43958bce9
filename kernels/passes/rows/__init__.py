"""Which rows are computed, and who may write them in any order."""

from .free_rows import free_rows

__all__ = ["free_rows"]
