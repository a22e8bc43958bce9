"""Bodies of the kernels that only training needs; the conventions are in `kernels/source/__init__.py`."""

from pathlib import Path


def body(name: str) -> Path:
    """The file of a body."""
    return Path(__file__).with_name(f"{name}.c")
