"""ncnn through Vulkan."""

from functools import partial

from .driven import by_pnnx as prepare
from .driven import loaded

load = partial(loaded, "ncnn", backend="vulkan")
__all__ = ["load", "prepare"]
