"""Graph -> ncnn's .param and .bin, weights in fp32: no converter is needed where the benchmark runs.

Layers' parameters by number are those of ncnn's operator documentation (github.com/Tencent/ncnn/wiki); activations are
fused into convolutions and dense layers, as ncnn's own optimiser does. ncnn has no batch: axis 0 is left away.
"""

from .files import MAGIC, Files, write_ncnn
from .writer import Unsupported

__all__ = ["MAGIC", "Files", "Unsupported", "write_ncnn"]
