"""ncnn through Vulkan."""

from .ncnn_net import load_vulkan as load
from .ncnn_net import prepare

__all__ = ["load", "prepare"]
