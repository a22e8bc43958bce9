"""LiteRT on the CPU."""

from functools import partial

from .driven import as_tflite as prepare
from .driven import loaded

load = partial(loaded, "litert")
__all__ = ["load", "prepare"]
