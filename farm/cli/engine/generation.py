"""`farm infer --language-model`: the tokens that follow a text, and when each of them came; or its perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape

from farm.cli.output import write_whole
from kernels.errors import InputError
from orchestrator.figures import NS_PER_MS
from orchestrator.model.experiment.language_model import Text
from orchestrator.model.quantity import counted
from orchestrator.report import wording

from . import inference

if TYPE_CHECKING:
    from kernels.frontend.tokens import Tokens
    from kernels.ir.decoder import DecoderStep
    from workers.engines.models.texts import Judged
    from workers.infer import InferResult

_NS_PER_S = 1e9
_FEWEST, _PIECE = 2, 32
"""Tokens of a text that has a perplexity, and those of a run, whose rows of logits are in memory at once."""


def generate(
    model: Path, given: Path, count: int, *, as_text: bool = False, check: bool = False,
    load_state: Path | None = None, save_state: Path | None = None, **how: Any,
) -> dict[str, Any]:  # fmt: skip
    """Generate `count` tokens behind those of a file, behind each of its rows where it has several, and return
    everything that `--json` prints. `as_text`: the model's own tokenizer makes them. `check`: hold the answer against
    the reference, as a job does. `load_state`: the file's tokens follow those of a state, which are not computed again;
    `save_state`: keep what is taken, all but the last token. `how`: see `workers.infer.infer`. Raises as that does, and
    ModelError, InputError and PlanError."""
    from kernels.frontend.load import load_decoder
    from workers.engines.models.texts import check_answers
    from workers.engines.pocketfarm.kept_state import KeptState, identity_of, state_of

    own = identity_of(model) if load_state or save_state else ""
    before = KeptState.read(load_state) if load_state else None
    if before is not None and load_state is not None:
        before.check(load_state, own, how["options"].backend, how["options"].precision)
    taken = before.tokens if before else ()
    texts = _texts_in(model, given, as_text=as_text)
    if len(texts) > 1 and (load_state or save_state):
        raise InputError(
            f"{given}: {counted(len(texts), 'row')}, and a state is kept of one text: give one row, or no state"
        )
    texts = np.concatenate([np.tile(np.array(taken, np.int64), (len(texts), 1)), texts], 1)
    whole = Text(len(taken), texts.shape[1] - len(taken), count, len(texts))
    steps = load_decoder(model, whole.capacity, whole.pieces, sequences=whole.batch)
    found = _run(steps, texts, given, generate=count, before=before, keeps_state=save_state is not None, **how)
    data = _as_data(found)
    if save_state:
        kept = state_of(found.plan, found.checkpoint, own, (*map(int, texts[0]), *found.sample.tokens[:-1]))
        write_whole(save_state, kept.content(), "--save-state")
        data["state"] = {"file": str(save_state), "model_sha256": own, "tokens": len(kept.tokens)}
    if check:
        data["check"] = _checked(check_answers(model, steps[-1], texts, found.sample.answers, found.runs_on.precision))
    return data


def perplexity(model: Path, given: Path, *, as_text: bool = False, **how: Any) -> dict[str, Any]:
    """Return the perplexity of a file's text, and the logarithm of each token's probability behind all before it. It is
    exp of the mean of -log p over all tokens but the first. Raises as `generate`."""
    from kernels.frontend.load import load_decoder

    text, *others = _texts_in(model, given, as_text=as_text)
    if others:
        raise InputError(f"{given}: {counted(1 + len(others), 'row')}, and a perplexity is of one text: give one row")
    if len(text) < _FEWEST:
        raise InputError(f"{given}: a text of {len(text)} token has no perplexity: give {_FEWEST} or more")
    piece = min(_PIECE, len(text))
    steps = load_decoder(model, len(text), (piece, 1) if piece > 1 else (1,), logits=piece)
    found = _run(steps, text, given, generate=0, **how)
    scores = found.sample.log_probabilities
    own = {"perplexity": math.exp(-sum(scores) / len(scores)), "log_probabilities": list(scores)}
    return own | _facts(found)


def _texts_in(model: Path, given: Path, *, as_text: bool) -> Tokens:
    """Return the tokens of a file's rows. Raises InputError, and ModelError where the model has no tokenizer."""
    from kernels.frontend.tokens import read_texts
    from orchestrator.acts.submission.tokenizer import tokens_of

    if not as_text:
        return read_texts(given)
    try:
        return np.asarray(tokens_of(model, given.read_text("utf-8")))[None]
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{given}: cannot be read as text: {e}; give a file in UTF-8") from e


def _run(steps: Sequence[DecoderStep], text: Tokens, source: Path, **how: Any) -> InferResult:
    from kernels.compile import compile_generation
    from kernels.frontend.tokens import check_tokens
    from workers.infer import infer

    check_tokens(text, steps[-1].words, source)
    compiler = partial(_compiled, compile_generation, steps)
    return infer(work=[(steps[-1].graph, {"tokens": text})], compiler=compiler, **how)[0]


def _checked(told: Judged) -> dict[str, Any]:
    of = told.check
    return {
        "tokens": told.tokens, "ok": of.ok, "max_abs_difference": of.max_abs_difference, "tolerance": of.tolerance,
        "reason": told.reason or None,
    }  # fmt: skip


def _compiled(compile_generation: Any, steps: Any, _: object, *options: Any, **how: Any) -> Any:
    return compile_generation(steps, *options, **how)


def _as_data(result: InferResult) -> dict[str, Any]:
    """The tokens, of several texts by text, and their times. Speeds of the prompt and of the generation are two
    figures, each of all texts together."""
    sample = result.sample
    first, several = sample.token_ns[0], sample.sequences > 1
    behind, later = sample.sequences * (len(sample.token_ns) - 1), sample.token_ns[-1] - first
    return {
        "tokens": list(map(list, sample.answers)) if several else list(sample.tokens),
        "token_ms": [(at - sample.start_ns) / NS_PER_MS for at in sample.token_ns],
        "prompt_tokens": sample.prompt,
        "first_token_ms": (first - sample.start_ns) / NS_PER_MS,
        "prompt_tokens_per_s": sample.sequences * sample.prompt * _NS_PER_S / max(1, first - sample.start_ns),
        "generated_tokens_per_s": behind * _NS_PER_S / max(1, later) if behind else None,
        **({"sequences": sample.sequences} if several else {}),
        **_facts(result),
    }


def _facts(result: InferResult) -> dict[str, Any]:
    facts = inference.as_data(result, (), {})
    return {name: fact for name, fact in facts.items() if name not in ("outputs", "inference_ms", "files")}


def render(facts: dict[str, Any]) -> RenderableType:
    """The same for people."""
    where = facts["runs_on"]
    ran_on = f"[bold]ran on[/] {escape(where['device'])} ({where['source']}): {escape(where['device_name'])}"
    if "perplexity" in facts:
        count = len(facts["log_probabilities"])
        return Group(ran_on, f"[bold]perplexity[/] {facts['perplexity']:.6g} of {wording.counted(count, 'token')}")
    speed, sequences = facts["generated_tokens_per_s"], facts.get("sequences", 1)
    generated = "" if speed is None else f" · {speed:.4g} tokens a second behind it"
    answers = facts["tokens"] if sequences > 1 else [facts["tokens"]]
    generated += f", {speed / sequences:.4g} of each of {counted(sequences, 'text')}" if speed and sequences > 1 else ""
    return Group(
        ran_on,
        f"[bold]first token[/] after {wording.ms(facts['first_token_ms'])} ms, prompt of {facts['prompt_tokens']}"
        f"{generated}: the first run, not warmed up",
        *(f"[bold]tokens[/] {' '.join(map(str, each))}" for each in answers),
        *_check_line(facts.get("check")),
    )


def _check_line(check: dict[str, Any] | None) -> list[str]:
    if check is None:
        return []
    if check["reason"]:
        return [f"[bold red]wrong[/] {escape(check['reason'])}"]
    return [f"[bold]checked[/] {counted(check['tokens'], 'token')}: each has the reference's largest logit"]
