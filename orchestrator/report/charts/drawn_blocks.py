"""Choose the blocks whose raw records a page draws: every inference over the run, power over the time of a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.figures import BlockFigures

from .rows import by_device, thin

MAX_BLOCKS = 100
"""The most blocks of a device, about: a chart shows no more, and a record may be large."""
LEAST_ROUNDS = 2


def drawn_blocks(blocks: Iterable[BlockFigures]) -> list[str]:
    """Their jobs: of the first few devices the blocks of evenly spaced rounds, so that each cell has as many."""
    return [block.job_id for own in by_device(list(blocks)).values() for block in _of_rounds(own)]


def _of_rounds(blocks: Sequence[BlockFigures]) -> list[BlockFigures]:
    """Canaries are numbered by themselves, and chosen by their own numbers."""
    kept = []
    for role in ("work", "canary"):
        own = [block for block in blocks if block.role == role]
        numbers = sorted({block.block for block in own})
        chosen = set(thin(numbers, max(LEAST_ROUNDS, MAX_BLOCKS * len(numbers) // max(1, len(own)))))
        kept += [block for block in own if block.block in chosen]
    return kept
