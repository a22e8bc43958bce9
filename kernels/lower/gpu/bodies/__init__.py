"""Bodies of the kernels of operations that are computed in one way."""

from __future__ import annotations

from pathlib import Path


def body(name: str) -> Path:
    """The file of a body."""
    return Path(__file__).with_name(f"{name}.c")
