"""ncnn on the CPU."""

from functools import partial

from .driven import by_pnnx as prepare
from .driven import loaded

load = partial(loaded, "ncnn")
__all__ = ["load", "prepare"]
