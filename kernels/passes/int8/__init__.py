"""Passes for networks in 8 bits: their layers take scales and zero points from a model's own nodes."""

from .float_products import float_products
from .quantized_inputs import quantized_inputs
from .rounded_outputs import rounded_outputs

__all__ = ["float_products", "quantized_inputs", "rounded_outputs"]
