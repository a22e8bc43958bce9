"""Show the result of tuning, as data and as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from orchestrator.model.quantity import counted
from orchestrator.report.listing import Head, Listing

if TYPE_CHECKING:
    from kernels.tuning import Found
    from workers.tuning.plan_comparison import Comparison
    from workers.tuning.tune_device import Tuned

STANDS = {True: "used", False: "dropped: no gain in a whole network", None: "not compared yet"}


def as_data(result: Tuned) -> dict[str, Any]:
    """Everything that `farm tune --json` prints."""
    verdict = result.verdict
    return {
        "device": result.device.serial,
        "source": result.device.source.value,
        "key": result.key,
        "searched": list(result.searched),
        "left": result.left,
        "search_s": result.search_s,
        "compare_s": result.compare_s,
        "choices": [row(found) for found in result.choices],
        "kept": list(verdict.kept),
        "dropped": list(verdict.dropped),
        "undecided": list(verdict.undecided),
        "wrong": list(verdict.wrong),
        "comparisons": [_comparison(each) for each in verdict.comparisons],
    }


def row(found: Found) -> dict[str, Any]:
    """One entry of the database."""
    return {**found.model_dump(mode="json"), "gain": found.gain, "is_default": found.is_default}


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "tuned_choices": found.choices,
        "untuned_ms": found.untuned_ms,
        "tuned_ms": found.tuned_ms,
        "change": asdict(found.change),
    }


def render(result: Tuned, budget: str | None = None) -> RenderableType:
    """The same for people. `budget`: where there was one."""
    verdict = result.verdict
    lines = [compared(each) for each in verdict.comparisons]
    lines += [f"[red]the tuned plan was discarded:[/] {escape(reason)}" for reason in verdict.wrong]
    if result.left or verdict.undecided:
        lines.append(
            f"{budget} were over: {counted(result.left, 'layer is', 'layers are')} left to search, "
            f"{counted(len(verdict.undecided), 'choice')} to compare; the same command goes on"
        )
    layers = len(result.choices) + result.left
    lines.append(
        f"{len(result.searched)} of {counted(layers, 'layer')} searched now, in {result.search_s:.0f} s; "
        f"compared in {result.compare_s:.0f} s; {counted(len(verdict.kept), 'layer runs', 'layers run')} otherwise "
        f"than without tuning, {counted(len(verdict.dropped), 'choice was', 'choices were')} dropped"
    )
    return Group(table(result.choices), "", *lines)


def compared(found: Comparison) -> str:
    """One comparison of the whole network, and whether it tells a difference."""
    change = found.change
    return (
        f"[bold]whole network[/] untuned {found.untuned_ms:.3f} ms, tuned {found.tuned_ms:.3f} ms: {change.value:+.1%} "
        f"({change.low:+.1%} to {change.high:+.1%}), with {counted(found.choices, 'tuned layer')}" + _unresolved(found)
    )


def _unresolved(found: Comparison) -> str:
    """Return what is to be said where the interval includes zero; empty elsewhere."""
    if not found.change.low <= 0 <= found.change.high:
        return ""
    if found.losers:
        losers = counted(len(found.losers), "choice")
        return f"; the interval includes zero: {losers} without a gain in the network dropped"
    return "; the interval includes zero: the whole network does not tell, each layer alone took less time in it"


def table(found: Iterable[Found]) -> RenderableType:
    """One table a device and precision."""
    parts: dict[str, list[list[str]]] = {}
    for each in found:
        gain = f"{each.gain:.2f} x" if each.gain else "-"
        stands = "the compiler's own" if each.is_default else STANDS[each.kept]
        cells = (each.conv.removeprefix("conv "), each.choice.words, each.default, f"{each.ms:.3f}", gain, stands)
        parts.setdefault(f"{each.device} | {each.precision}", []).append([escape(cell) for cell in cells])
    heads = ("layer", "choice", "untuned", Head("ms", True), Head("gain", True), "")
    return Group(*(one for title, rows in parts.items() for one in (Text(title, style="italic"), Listing(heads, rows))))
