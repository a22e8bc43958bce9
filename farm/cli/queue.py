"""`farm queue`: queueing experiments with phones as servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from orchestrator.errors import Unsupported

from .experiments import PANEL
from .output import JsonOption, log, out, print_json

if TYPE_CHECKING:
    from orchestrator.queueing.measures import ClassFigures, Figure, Measured
    from orchestrator.queueing.spec import QueueingSpec
    from orchestrator.queueing.theory import Theory

MS_PER_S = 1000.0


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=PANEL)(queue)


def queue(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="Queueing spec, a YAML file.")],
    simulate: Annotated[bool, typer.Option("--simulate", help="In virtual time, with modelled servers.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a queueing experiment: requests arrive, a policy says which server serves which, and latency is measured.

    Latency counts from the intended arrival. Figures have 95 % intervals; the warm-up is left out. Needs no farm.

    Example: `farm queue examples/queueing/rack.yaml --simulate`
    """
    from orchestrator.queueing.experiment import as_data, run_and_measure
    from orchestrator.queueing.spec import load

    loaded = load(spec)
    if not simulate:
        raise Unsupported(
            "live queueing is not there yet: requests cannot be sent to phones",
            remedy="add --simulate to run the same spec in virtual time",
        )
    measured = run_and_measure(loaded)
    if as_json:
        print_json(as_data(loaded, measured))
    else:
        _show(loaded, measured)


def _show(spec: QueueingSpec, measured: Measured) -> None:
    from orchestrator.queueing.oracle import theory_of
    from orchestrator.report.listing import Head, Listing

    heads = [Head(name, True) for name in ("requests", "mean ms", "p50", "p90", "p99", "p99.9", "queue", "drops")]
    rows: list[Any] = []
    lines = theory_of(spec)
    parts = [*measured.classes.items()] if len(measured.classes) > 1 else []
    for name, each in [*parts, ("all", measured.total)]:
        rows += _rows(name, each)
        rows += [_theory_row(line) for line in lines if (line.of_class or "all") == name]
    out().print(Listing(("class", "time", *heads), rows, header_style="dim", by_first=True))
    out().print(_summary(measured), markup=False, soft_wrap=True)
    log().print(f"simulated; warm-up left out: {max(measured.cuts_s):.3g} s of {spec.duration:g} s", markup=False)
    for doubt in measured.doubts:
        log().print(f"doubt: {doubt}", markup=False, soft_wrap=True)


def _rows(name: str, figures: ClassFigures) -> list[tuple[str, ...]]:
    first = (str(figures.requests), figures.queue_length, figures.drop_share)
    rows: list[tuple[str, ...]] = []
    for label, times in (
        ("waiting", figures.waiting_s),
        ("service", figures.service_s),
        ("sojourn", figures.sojourn_s),
    ):
        quantiles = (times.mean, times.p50, times.p90, times.p99, times.p99_9)
        others = ("", "", "") if rows else (first[0], _text(first[1]), _text(first[2], 100.0, " %"))
        rows.append((escape(name), label, others[0], *(_text(each, MS_PER_S) for each in quantiles), *others[1:]))
    return rows


def _theory_row(line: Theory) -> tuple[str, ...]:
    """Theory's mean waiting and sojourn beside those that were simulated."""
    p99 = "" if line.sojourn_p99_s is None else f"{line.sojourn_p99_s * MS_PER_S:.4g}"
    mean = f"{line.sojourn_s * MS_PER_S:.4g}"
    queued, drops = f"{line.queue_length:.4g}", f"{100 * line.drop_share:.3g} %"
    return (escape(line.of_class or "all"), f"[dim]sojourn, {line.name}[/]", "", mean, "", "", p99, "", queued, drops)


def _text(figure: Figure, scale: float = 1.0, unit: str = "") -> str:
    if figure.value is None:
        return ""
    value = f"{figure.value * scale:.4g}"
    if figure.low is None or figure.high is None:
        return value + unit
    return f"{value} ± {(figure.high - figure.low) / 2 * scale:.2g}{unit}"


def _summary(measured: Measured) -> str:
    total = measured.total
    words = [
        f"utilisation {_text(total.utilisation, 100.0, ' %')}",
        f"{_text(total.throughput_per_s)} requests/s served",
        f"deadlines missed {_text(total.deadline_miss_share, 100.0, ' %')}",
    ]
    if total.energy_with_idle_j_per_request.value:
        served, whole = _text(total.energy_j_per_request), _text(total.energy_with_idle_j_per_request)
        words.append(f"{served} J a request while it is served, {whole} J with idle servers")
    return "; ".join(words)
