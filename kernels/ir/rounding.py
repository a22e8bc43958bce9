"""Values rounded to whole numbers of 8 bits: x = (whole - zero) * scale.

Method: ONNX's QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, whose range holds 0.
"""

from __future__ import annotations

from .compositions import clip
from .expressions import Expression

_HIGH: Expression = ("max", "a", 0.0)
_LOW: Expression = ("min", "b", 0.0)
SCALE: Expression = ("select", ("equal", _HIGH, _LOW), 1.0, ("div", ("sub", _HIGH, _LOW), 255.0))
"""The scale of a range whose largest value is a and whose least is b."""
ZERO: Expression = ("round", clip(("div", ("neg", ("min", "a", 0.0)), "b"), 0.0, 255.0))
"""The zero of a range whose least value is a, at scale b."""
ROUNDED: Expression = clip(("add", ("round", ("div", "a", "b")), "c"), 0.0, 255.0)
"""The number of uint8 that a value a becomes at scale b and zero c."""
BACK: Expression = ("mul", ("sub", ROUNDED, "c"), "b")
"""The value that this number stands for."""
