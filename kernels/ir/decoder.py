"""The step of a language model's decoder: a graph with state, and what its ports mean."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Graph


@dataclass(frozen=True)
class DecoderStep:
    """A graph that takes tokens at a position and gives a row of logits for each: its keys and values are state."""

    graph: Graph
    tokens: str
    """Input (sequences, tokens) of whole numbers."""
    position: str
    """Input (sequences): how many tokens came before in each."""
    logits: str
    """Output (sequences, rows, vocabulary): a row for each token, or for the last ones."""
    capacity: int
    """Tokens of a sequence that the state holds."""

    @property
    def rows(self) -> int:
        """Return how many rows of logits a sequence has."""
        return self.graph.shapes[self.logits][1]

    @property
    def words(self) -> int:
        """Return how many words the vocabulary has."""
        return self.graph.shapes[self.logits][-1]

    @property
    def count(self) -> int:
        """Return how many tokens of a sequence a run takes."""
        return self.graph.shapes[self.tokens][1]

    @property
    def sequences(self) -> int:
        """Return how many sequences it computes side by side, each with a state of its own."""
        return self.graph.shapes[self.tokens][0]
