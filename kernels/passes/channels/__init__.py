"""What is done about channels of images: joined, shuffled, or in rows between images."""

from .nest_concats import nest_concats
from .shuffles import keep_shuffled

__all__ = ["keep_shuffled", "nest_concats"]
