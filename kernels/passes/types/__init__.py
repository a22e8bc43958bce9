"""Types of numbers: in 32 bits where these do, and written out between operations."""

from .in_parts import in_parts as in_parts
from .in_types import in_types as in_types
from .narrow import narrow as narrow
