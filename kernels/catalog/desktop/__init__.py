"""Algorithms that only desktop GPUs run, and phones never: matrix units, warpgroups, and what a tile takes there.

The families, which list these algorithms, are imported first, whoever asks for one of them alone.
"""

import kernels.catalog.convolution
import kernels.catalog.product  # noqa: F401
