"""Parameters that the kernels of additions share."""

from __future__ import annotations

from kernels.source.kernel import view

PLACES = (*view("a"), *view("b"), *view("dst"), "stacks", "hw", "multiply")
BOUNDS = ("lo", "hi")
"""The activation's bounds."""
