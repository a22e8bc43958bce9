"""Rewriting of channels of images: joined, shuffled, in rows between images; and of branches that are added up."""

from .branches import join_branches
from .convs_of_rows import convs_of_rows
from .nest_concats import nest_concats
from .norms_of_images import norms_of_images
from .patches_of_rows import patches_of_rows
from .shuffles import keep_shuffled
from .sink_transposes import sink_transposes

__all__ = [
    "convs_of_rows",
    "join_branches",
    "keep_shuffled",
    "nest_concats",
    "norms_of_images",
    "patches_of_rows",
    "sink_transposes",
]
