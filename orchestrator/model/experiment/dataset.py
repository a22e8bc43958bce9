"""A set of examples, of which each block takes a shard."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, FiniteFloat, field_validator

from orchestrator.model.base import Model

MOST_SHARDS = 1000
"""The most shards: as many as an experiment has blocks."""


_Numbers = Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]


class Dataset(Model):
    """Examples in one file, with or without labels. Block b takes shard b: the examples from b * shard on.

    The devices share the blocks out among themselves (`devices.count: any`), or each goes through the whole set.
    """

    inputs: str
    """Path of a `.npy`, relative to the experiment file: examples, then the dimensions of one input of the model;
    numbers of 8 bits without sign, or floating point. `farm dataset` makes one from images."""
    labels: str | None = None
    """Path of a text file with the number of the right class, one a line; without it predictions are compared with
    each other only."""
    shard: int = Field(default=100, ge=1, le=100_000)
    """Examples of a block."""
    mean: tuple[FiniteFloat, ...] = Field(default=(0.0,), min_length=1)
    """The numbers subtracted from the file's: one number, or one of each channel."""
    scale: tuple[FiniteFloat, ...] = Field(default=(1.0,), min_length=1)
    """The factors of the difference: one number, or one of each channel."""
    inputs_sha256: str | None = None
    """Filled in at submission, as the two below."""
    labels_sha256: str | None = None
    size: Annotated[int, Field(ge=1)] | None = None
    """Number of examples."""

    @field_validator("mean", "scale", mode="before", json_schema_input_type=float | _Numbers)
    @classmethod
    def _listed(cls, value: object) -> object:
        return [value] if isinstance(value, int | float) else value

    @property
    def shards(self) -> int:
        """The number of shards of a submitted set: the blocks of a configuration."""
        return -(-self._known_size // self.shard)

    def examples(self, block: int) -> range:
        """Return the places of a block's examples in a submitted set. The last block may have fewer."""
        return range(self._known_size)[block * self.shard : (block + 1) * self.shard]

    @property
    def _known_size(self) -> int:
        if self.size is None:
            raise ValueError("the set was not submitted: its size is not known")
        return self.size
