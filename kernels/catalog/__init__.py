"""Every family of algorithms of OpenCL and Vulkan."""

from __future__ import annotations

from typing import Any

from .convolution import CONVOLUTIONS
from .family import GpuFamily
from .product import PRODUCTS
from .transposition import TRANSPOSITIONS

FAMILIES: tuple[GpuFamily[Any], ...] = (CONVOLUTIONS, PRODUCTS, TRANSPOSITIONS)
