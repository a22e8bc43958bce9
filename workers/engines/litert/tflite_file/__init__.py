"""Graph -> a .tflite file for LiteRT, by the schema that comes with it; images become NHWC, weights stay fp32.

LiteRT pads by its rule SAME or not at all: where a layer's pads differ from that rule, they become an operation of
their own, as LiteRT's converters write them, too.
"""

from .file import write_tflite
from .writer import Unsupported

__all__ = ["Unsupported", "write_tflite"]
