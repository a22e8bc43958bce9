"""The time of a language model's answer: a prompt, and tokens one by one."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Seconds

from .distributions import LedgerCell

Count = Annotated[int, Field(ge=1, le=1 << 20)]
Counts = Count | tuple[Count, Count]
"""A number of tokens, or the least and the largest, each between them as likely."""
Draws = NDArray[np.float64]


class Texts(NamedTuple):
    """Drawn requests: seconds of their prompts and of the tokens behind the first, and the tokens of both."""

    prompt_s: Draws
    behind_s: Draws
    prompt: NDArray[np.int64]
    tokens: NDArray[np.int64]


class Answer(Model):
    """A prompt is read at one speed, and its answer generated at another; the prompt's end gives the first token."""

    kind: Literal["answer"]
    prompt: Counts
    """Tokens of a prompt: a number, or `[64, 512]`."""
    generate: Counts
    """Tokens of an answer."""
    prompt_token: Seconds | None = None
    """The time of one token of a prompt; on phones that compute answers it is measured, and so is `token`."""
    token: Seconds | None = None
    """The time from one token of an answer to the next."""
    ledger: LedgerCell | None = None
    """Measured answers whose two speeds are taken."""

    @rule
    def _known(self) -> None:
        given = [self.prompt_token is not None, self.token is not None]
        if any(given) and (self.ledger is not None or not all(given)):
            raise ValueError("give either prompt_token and token, or ledger")
        for name in ("prompt", "generate"):
            low, high = _ends(getattr(self, name))
            if low > high:
                raise ValueError(f"{name}: {low} is above {high}")

    @property
    def times(self) -> tuple[float, float]:
        """Return the times of a token of the prompt and of the answer; 0 where nobody has told them."""
        return self.prompt_token or 0.0, self.token or 0.0

    @property
    def longest(self) -> dict[str, int]:
        """Return the axes of the longest text."""
        return {"context": 0, "prompt": _ends(self.prompt)[1], "generate": _ends(self.generate)[1]}

    @property
    def usual(self) -> tuple[int, int]:
        """Return the tokens of a prompt and of an answer, on the average."""
        return round(_mean(self.prompt)), round(_mean(self.generate))

    @property
    def prompt_s(self) -> float:
        """Return the mean time of a prompt."""
        return _mean(self.prompt) * self.times[0]

    @property
    def mean(self) -> float:
        return self.prompt_s + (_mean(self.generate) - 1) * self.times[1]

    @property
    def scv(self) -> float:
        of_prompt, of_answer = (
            _variance(counts) * each**2 for counts, each in zip((self.prompt, self.generate), self.times, strict=True)
        )
        return (of_prompt + of_answer) / self.mean**2

    def texts(self, random: np.random.Generator, count: int) -> Texts:
        """Return so many drawn requests."""
        prompts, tokens = (
            random.integers(low, high, count, endpoint=True) for low, high in map(_ends, (self.prompt, self.generate))
        )
        prompt_s, behind_s = (
            np.asarray(each, np.float64) for each in (prompts * self.times[0], (tokens - 1) * self.times[1])
        )
        return Texts(prompt_s, behind_s, prompts, tokens)

    def draw(self, random: np.random.Generator, count: int) -> Draws:
        """Return whole times of drawn requests."""
        drawn = self.texts(random, count)
        return drawn.prompt_s + drawn.behind_s


def _ends(counts: Counts) -> tuple[int, int]:
    return counts if isinstance(counts, tuple) else (counts, counts)


def _mean(counts: Counts) -> float:
    return sum(_ends(counts)) / 2


def _variance(counts: Counts) -> float:
    """Variance of a whole number, each from the least to the largest as likely."""
    low, high = _ends(counts)
    return ((high - low + 1) ** 2 - 1) / 12
