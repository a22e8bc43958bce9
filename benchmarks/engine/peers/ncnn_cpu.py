"""ncnn on the CPU."""

from .ncnn_net import load_cpu as load
from .ncnn_net import prepare

__all__ = ["load", "prepare"]
