"""Figures of a block whose samples are answers of a language model: prompt and generation apart, each a ratio of sums
over the block's timed samples. Two tokens of one answer are no independent measurements: the block is."""

from __future__ import annotations

from itertools import pairwise
from statistics import median, quantiles

from orchestrator.energy import block_energy, calibration
from orchestrator.energy.gauge_readings import gauge_readings
from orchestrator.model import telemetry
from orchestrator.model.event import Sample
from orchestrator.model.power import Scope
from orchestrator.model.record import Record

from .times import NS_PER_MS


def prompt_per_s(record: Record) -> float | None:
    """Return tokens of the prompts over the time to the first token; None where no prompt is told."""
    found = [each for each in _timed(record) if each.prompt]
    spent_ns = sum(each.token_ns[0] - each.start_ns if each.token_ns else each.duration_ns for each in found)
    return _per_s(sum(each.prompt * each.sequences for each in found), spent_ns)


def generated_per_s(record: Record) -> float | None:
    """Return the tokens behind the first over the time from it to the last, those of all sequences together; of a
    program that tells only their number, all of them over the whole time. None where there are none."""
    found = _timed(record)
    tokens = sum(each.sequences * (len(each.token_ns) - 1) if each.token_ns else each.token_count for each in found)
    told = [each for each in found if each.token_ns or each.token_count]
    return _per_s(tokens, sum(e.token_ns[-1] - e.token_ns[0] if e.token_ns else e.duration_ns for e in told))


def generated_of_each_per_s(record: Record) -> float | None:
    """Return the same of one sequence of several side by side; None where an answer is alone."""
    found, sequences = generated_per_s(record), {each.sequences for each in _timed(record)}
    return found / sequences.pop() if found and len(sequences) == 1 and sequences != {1} else None


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


CAPACITY_C = 1e3, 1e5
"""Coulombs between which a phone's battery has its capacity; else the counter counts something else."""


def tokens_per_percent(record: Record) -> float | None:
    """Return the tokens that a hundredth of the battery's charge generates, as the whole phone draws it then. None
    where the gauge tells no charge counter, or the phone no level."""
    percent = record.state_before.battery_percent if record.state_before else None
    charge = next((uah for each in record.power if (uah := telemetry.charge_uah(each.charge_uah)) is not None), None)
    if not percent or charge is None or not _answers(record):
        return None
    capacity_c = charge * 3.6e-3 * 100 / percent
    energy, volts = block_energy(record), gauge_readings(record.power, calibration(record)).volts
    if energy is None or energy.scope is not Scope.DEVICE or not CAPACITY_C[0] <= capacity_c <= CAPACITY_C[1]:
        return None
    joules = capacity_c / 100 * float(median(volts)) if len(volts) else 0.0
    spent = [each.gross_power_w * each.length_s / each.tokens for each in energy.phases if each.name == "generated"]
    return joules / spent[0] if spent and min(joules, spent[0]) > 0 else None


def model_bytes(record: Record) -> float | None:
    """Return the size of the model's file; None where nobody told."""
    return record.provenance.model_bytes or None


MOST_TOKENS = 1024
"""Tokens of an answer that are kept for comparing."""


def answer_of(record: Record) -> tuple[int, ...]:
    """Return the tokens of the first timed answer, at most `MOST_TOKENS`, of several sequences those of the first;
    empty where none are told."""
    return next((each.answers[0][:MOST_TOKENS] for each in _timed(record) if each.tokens), ())


def _timed(record: Record) -> list[Sample]:
    return [each for each in record.samples if each.phase == "timed"]


def _answers(record: Record) -> list[Sample]:
    return [each for each in _timed(record) if each.token_ns]


def _gaps_ms(record: Record) -> list[float]:
    return [(after - before) / NS_PER_MS for each in _answers(record) for before, after in pairwise(each.token_ns)]


def _per_s(tokens: int, spent_ns: int) -> float | None:
    return 1e9 * tokens / spent_ns if tokens > 0 and spent_ns > 0 else None
