"""`farm infer --language-model`: the tokens that follow a text, and when each of them came."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.markup import escape

from orchestrator.figures import NS_PER_MS
from orchestrator.model.experiment.language_model import Text
from orchestrator.report import wording

from . import inference

if TYPE_CHECKING:
    from workers.engines.models.texts import Judged
    from workers.infer import InferResult

_NS_PER_S = 1e9


def generate(model: Path, tokens: Path, count: int, *, check: bool = False, **how: Any) -> dict[str, Any]:
    """Generate `count` tokens behind those of a file, and return everything that `--json` prints. `check`: hold them
    against the reference, as a job does. `how`: see `workers.infer.infer`. Raises as that does, and ModelError and
    InputError."""
    from kernels.compile import compile_generation
    from kernels.frontend.load import load_decoder
    from kernels.frontend.tokens import check_tokens, read_tokens
    from workers.engines.models.texts import check_answer
    from workers.infer import infer

    text = read_tokens(tokens)
    whole = Text(0, len(text), count)
    steps = load_decoder(model, whole.capacity, whole.pieces)
    check_tokens(text, steps[-1].words, tokens)
    compiler = partial(_compiled, compile_generation, steps)
    work = [(steps[-1].graph, {"tokens": text})]
    found = infer(work=work, compiler=compiler, generate=count, **how)[0]
    data = _as_data(found)
    if check:
        data["check"] = _checked(check_answer(model, steps[-1], text, found.sample.tokens, found.runs_on.precision))
    return data


def _checked(told: Judged) -> dict[str, Any]:
    of = told.check
    return {
        "tokens": told.tokens, "ok": of.ok, "max_abs_difference": of.max_abs_difference, "tolerance": of.tolerance,
        "reason": told.reason or None,
    }  # fmt: skip


def _compiled(compile_generation: Any, steps: Any, _: object, *options: Any, **how: Any) -> Any:
    return compile_generation(steps, *options, **how)


def _as_data(result: InferResult) -> dict[str, Any]:
    """The tokens and their times. Speeds of the prompt and of the generation are two figures."""
    sample = result.sample
    first = sample.token_ns[0]
    behind, later = len(sample.tokens) - 1, sample.token_ns[-1] - first
    facts = inference.as_data(result, (), {})
    del facts["outputs"], facts["inference_ms"], facts["files"]
    return {
        "tokens": list(sample.tokens),
        "token_ms": [(at - sample.start_ns) / NS_PER_MS for at in sample.token_ns],
        "prompt_tokens": sample.prompt,
        "first_token_ms": (first - sample.start_ns) / NS_PER_MS,
        "prompt_tokens_per_s": sample.prompt * _NS_PER_S / max(1, first - sample.start_ns),
        "generated_tokens_per_s": behind * _NS_PER_S / max(1, later) if behind else None,
        **facts,
    }


def render(facts: dict[str, Any]) -> RenderableType:
    """The same for people."""
    where, speed = facts["runs_on"], facts["generated_tokens_per_s"]
    generated = "" if speed is None else f" · {speed:.4g} tokens a second behind it"
    return Group(
        f"[bold]ran on[/] {escape(where['device'])} ({where['source']}): {escape(where['device_name'])}",
        f"[bold]first token[/] after {wording.ms(facts['first_token_ms'])} ms, prompt of {facts['prompt_tokens']}"
        f"{generated}: the first run, not warmed up",
        f"[bold]tokens[/] {' '.join(map(str, facts['tokens']))}",
        *_check_line(facts.get("check")),
    )


def _check_line(check: dict[str, Any] | None) -> list[str]:
    if check is None:
        return []
    if check["reason"]:
        return [f"[bold red]wrong[/] {escape(check['reason'])}"]
    return [f"[bold]checked[/] {check['tokens']} tokens: each has the reference's largest logit"]
