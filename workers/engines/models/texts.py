"""Texts of language models: the tokens that are drawn for one, its decoder, and the judgement on what follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.frontend.load import load_decoder
from kernels.frontend.tokens import read_tokens
from kernels.ir.decoder import DecoderStep
from kernels.reference import evaluate, roundings
from orchestrator.model.base import content_hash
from orchestrator.model.device import Precision
from orchestrator.model.experiment import Workload
from orchestrator.model.experiment.language_model import Text
from orchestrator.model.record import OutputCheck
from workers.files.host_files import HostFiles

from .single_flight_cache import SingleFlightCache
from .verify_outputs import MOST, allowing

TOLERANCE = 1e-3
"""The difference of two logits below which either token is right."""
FEW, MOST_WORK = 4, 2e12
"""Tokens of an answer that are checked where the reference has more products to add than so many; on one core it adds
some 1e10 a second."""

Tokens = tuple[int, ...]
TokenArray = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """The reference's logits at the first tokens of an answer."""

    behind: npt.NDArray[np.float64]
    """The largest logit less that of the token, of each."""
    best: Tokens
    """The tokens of the largest logits."""
    scale: float
    lost: float
    """The largest difference of a logit that rounding alone makes in the precision."""


class Judged(NamedTuple):
    """The judgement on an answer."""

    check: OutputCheck
    reason: str
    """The reason why the answer is wrong; empty where it is right."""
    tokens: int
    """Tokens that were compared."""


class Texts:
    """Caches of one host process, shared by its threads."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files
        self._decoders: SingleFlightCache[list[DecoderStep]] = SingleFlightCache(4)
        self._rows: SingleFlightCache[Rows] = SingleFlightCache(64)

    def decoder(self, workload: Workload, text: Text) -> list[DecoderStep]:
        """The steps of a model for texts of a length. Raises ModelFileError, FileUnavailable, ModelError."""
        sized = text.capacity, text.pieces
        key = f"{workload.language_model_sha256 or workload.language_model} {sized} {text.batch}"
        return self._decoders.get(key, lambda: load_decoder(self.file(workload), *sized, sequences=text.batch))

    def tokens(self, workload: Workload, text: Text) -> npt.NDArray[np.int64]:
        """The tokens of context and prompt, each as likely as another, by the workload's seed; of a prompt that it
        gives these. Longer texts of a seed begin as shorter ones do. Of several texts (texts, tokens), the first of
        which is that of a single one."""
        words, given = self.decoder(workload, text)[-1].words, workload.prompt_sha256
        prompt = () if given is None else (read_tokens(self._files.path(given)),)
        drawn = text.context + (text.prompt if given is None else 0)
        seeds: list[Any] = [[workload.seed, number] if number else workload.seed for number in range(text.batch)]
        texts = [np.concatenate([np.random.default_rng(s).integers(0, words, drawn), *prompt]) for s in seeds]
        return np.stack(texts) if text.batch > 1 else texts[0]

    def judge(self, workload: Workload, text: Text, answers: Sequence[Tokens], precision: Precision) -> Judged:
        """Hold the answer of each text against the reference's logits, see `check_answers`."""

        def rows(path: Path, before: TokenArray, own: Tokens, precision: Precision) -> Rows:
            key = f"{content_hash(workload)} {before.tolist()} {own} {precision}"
            return self._rows.get(key, lambda: read_rows(path, before, own, precision))

        step, given = self.decoder(workload, text)[-1], self.tokens(workload, text)
        return check_answers(self.file(workload), step, given, answers, precision, rows)

    def file(self, workload: Workload) -> Path:
        """Return the submitted file. Raises FileUnavailable."""
        sha256 = workload.language_model_sha256
        return self._files.path(sha256) if sha256 else Path(str(workload.language_model))


def compared(step: DecoderStep, given: TokenArray, count: int) -> int:
    """Return how many tokens of an answer are compared; `given`: the tokens of all texts."""
    weights = sum(each.size for each in step.graph.constants.values())
    return count if weights * (given.size + step.sequences * count) <= MOST_WORK else min(FEW, count)


def judged(found: Rows, answer: Tokens, precision: Precision) -> Judged:
    """The judgement on tokens by the reference's rows behind them. Products of 8 bits lose what nobody here imitates:
    with them a token is wrong only where it is so by the widest tolerance of outputs."""
    behind = float(found.behind.max())
    tolerance = MOST * found.scale if precision is Precision.INT8 else TOLERANCE
    check = OutputCheck(name="tokens", max_abs_difference=behind, tolerance=tolerance, ok=behind < tolerance)
    check = allowing(check, 2 * found.lost, MOST * found.scale)
    place = int(found.behind.argmax())
    reason = (
        f"token {place + 1} of the answer is {answer[place]}, and the reference's is {found.best[place]}, whose "
        f"logit is larger by {behind:.3g}, not by less than {check.tolerance:.3g}: the kernel or the "
        "driver computes wrongly"
    )
    return Judged(check, "" if check.ok else reason, len(found.best))


def read_rows(path: Path, before: TokenArray, answer: Tokens, precision: Precision) -> Rows:
    """Run the reference over a whole text at once: one different token changes nothing of those behind it."""
    given = [*map(int, before), *answer[:-1]]
    step = load_decoder(path, len(given), (len(given),), len(answer))[0]
    logits = _logits(step, given, len(answer))
    behind = logits.max(-1) - logits[np.arange(len(answer)), answer]
    lost = 0.0
    if precision is not Precision.FP32 and behind.max() >= TOLERANCE:
        rounded = _logits(step, given, len(answer), **roundings(precision.value))
        lost = float(np.abs(rounded - logits).max())
    best = tuple(map(int, logits.argmax(-1)))
    return Rows(behind, best, float(np.abs(logits).max()), lost)


def check_answers(
    path: Path,
    step: DecoderStep,
    given: TokenArray,
    answers: Sequence[Tokens],
    precision: Precision,
    rows: Callable[[Path, TokenArray, Tokens, Precision], Rows] = read_rows,
) -> Judged:
    """Hold the answer of each text against the reference's logits behind the same tokens: each token has the largest
    one, or one that is less by no more than the tolerance. Returns the judgement on the worst of them.

    `step`: of one token; `given`: (tokens) or (texts, tokens). Raises as `load_decoder`."""
    count, found = compared(step, given, len(answers[0])), list[Judged]()
    for text, answer in zip(np.atleast_2d(given), answers, strict=True):
        found.append(judged(rows(path, text, answer[:count], precision), answer[:count], precision))
    worst = max(found, key=lambda each: (not each.check.ok, each.check.max_abs_difference))
    where = f"text {found.index(worst) + 1}: " if worst.reason and len(found) > 1 else ""
    return worst._replace(reason=where + worst.reason)


def _logits(step: DecoderStep, given: list[int], rows: int, **how: Any) -> npt.NDArray[np.float64]:
    """The last rows of logits behind tokens."""
    state = {name: np.zeros(step.graph.shapes[name]) for name in step.graph.state}
    inputs = {step.tokens: np.array([given]), step.position: np.array([0]), **state}
    return np.asarray(evaluate(step.graph, inputs, **how)[step.logits][0, -rows:], np.float64)
