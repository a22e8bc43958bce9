"""Figures of a block whose samples are answers of a language model: prompt and generation apart, each a ratio of sums
over the block's timed samples. Two tokens of one answer are no independent measurements: the block is."""

from __future__ import annotations

from itertools import pairwise
from statistics import median, quantiles

from orchestrator.model.event import Sample
from orchestrator.model.record import Record

from .times import NS_PER_MS


def prompt_per_s(record: Record) -> float | None:
    """Return tokens of the prompts over the time to the first token; None without an answer."""
    found = _answers(record)
    return _per_s(sum(each.prompt for each in found), sum(each.token_ns[0] - each.start_ns for each in found))


def generated_per_s(record: Record) -> float | None:
    """Return the tokens behind the first over the time from it to the last; None where there are none."""
    found = _answers(record)
    tokens, spent_ns = sum(len(each.tokens) - 1 for each in found), sum(e.token_ns[-1] - e.token_ns[0] for e in found)
    return _per_s(tokens, spent_ns)


def first_token_ms(record: Record) -> float | None:
    """Return the median time from the start of a prompt to its answer's first token."""
    found = [(each.token_ns[0] - each.start_ns) / NS_PER_MS for each in _answers(record)]
    return median(found) if found else None


def between_tokens_ms(record: Record) -> float | None:
    """Return the median time from one token to the next."""
    found = _gaps_ms(record)
    return median(found) if found else None


def between_tokens_p99_ms(record: Record) -> float | None:
    """Return the 99th percentile of the times from one token to the next; None of fewer than a hundred."""
    found = _gaps_ms(record)
    return quantiles(found, n=100, method="inclusive")[98] if len(found) >= 100 else None


def _answers(record: Record) -> list[Sample]:
    return [each for each in record.samples if each.phase == "timed" and each.token_ns]


def _gaps_ms(record: Record) -> list[float]:
    return [(after - before) / NS_PER_MS for each in _answers(record) for before, after in pairwise(each.token_ns)]


def _per_s(tokens: int, spent_ns: int) -> float | None:
    return 1e9 * tokens / spent_ns if tokens > 0 and spent_ns > 0 else None
