"""Types of numbers: written out between operations, and in fp32 for backends that have nothing else."""

from .in_parts import in_parts as in_parts
from .in_single import in_single as in_single
from .in_types import in_types as in_types
