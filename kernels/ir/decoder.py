"""The step of a language model's decoder: a graph with state, and what its ports mean."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .graph import Graph


@dataclass(frozen=True)
class DecoderStep:
    """A graph that takes tokens at a position and gives a row of logits for each: its keys and values are state."""

    graph: Graph
    tokens: str
    """Input (1, tokens) of whole numbers."""
    position: str
    """Input (1): how many tokens came before."""
    logits: str
    """Output (1, rows, vocabulary): a row for each token, or for the last ones."""
    capacity: int
    """Tokens that the state holds."""

    @property
    def rows(self) -> int:
        """Return how many rows of logits there are."""
        return self.graph.shapes[self.logits][1]

    @property
    def words(self) -> int:
        """Return how many words the vocabulary has."""
        return self.graph.shapes[self.logits][-1]

    @property
    def count(self) -> int:
        """Return how many tokens a run takes."""
        return prod(self.graph.shapes[self.tokens])
