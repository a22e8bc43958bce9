"""The text of a language model: how many tokens come before, are asked and are generated. These are axes of the matrix;
a workload may give them too, as people write them down."""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.model.base import Model, rule

DEFAULTS = {"context": 0, "prompt": 512, "generate": 128}
"""The numbers of tokens where none are given; those of prompt and answer are llama-bench's."""
BATCH = "batch"
TEXT_AXES = (*DEFAULTS, BATCH)
"""Axes that a workload may give, too."""

PIECE = 64
"""The most tokens that a model takes together."""


class PromptFile(Model):
    """A file with a prompt: its text, or the numbers of its tokens."""

    text: str | None = None
    """Path of a text file, relative to the experiment file; the model's own tokenizer makes tokens of it."""
    tokens: str | None = None
    """Path of a file with the tokens' numbers: `.npy`, or text."""

    @rule
    def _one_of(self) -> None:
        if (self.text is None) == (self.tokens is None):
            raise ValueError("give one of `text` and `tokens`")


class Text(NamedTuple):
    """One text of a model, or several of one length side by side."""

    context: int
    """Tokens that the model has taken before the clock starts."""
    prompt: int
    generate: int
    batch: int = 1
    """Texts that are taken side by side."""

    @property
    def capacity(self) -> int:
        """Return how many tokens of a text a state has to hold; the last one that is generated is not taken."""
        return self.context + self.prompt + self.generate - 1

    @property
    def pieces(self) -> tuple[int, ...]:
        """Return the numbers of tokens that a run of the model takes: a piece; what is left of the prompt behind its
        pieces, so that no run inside the clock is filled up, or computes a token again; one."""
        piece = min(PIECE, max(self.context, self.prompt))
        return tuple(sorted({piece, self.prompt % piece or piece, 1}, reverse=True))


def with_text(data: object) -> object:
    """Return an experiment file's data with its text among the axes. Raises ValueError where it is given twice."""
    match data:
        case {"workload": {"language_model": str(), **given}, **rest}:
            matrix = rest.get("matrix") or {}
            if not isinstance(matrix, dict):
                return data
            for name in (name for name in TEXT_AXES if given.get(name) is not None and matrix.get(name) is not None):
                raise ValueError(f"give `{name}` once: as `workload.{name}` or as `matrix.{name}`")
            own = {name: given.get(name) for name in TEXT_AXES if name in DEFAULTS or given.get(name) is not None}
            listed = {name: DEFAULTS[name] if value is None else value for name, value in own.items()}
            if isinstance(own["prompt"], str | dict):  # its tokens are counted at submission
                del listed["prompt"]
            return {**data, "matrix": listed | {name: v for name, v in matrix.items() if v is not None}}  # type: ignore[dict-item]
    return data
