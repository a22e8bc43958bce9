"""The tables that `farm queue` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from farm.cli.output import day, out, print_json, say

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.queueing.capacity import Capacity, Point
    from orchestrator.queueing.measures import ClassFigures, Figure, Measured
    from orchestrator.queueing.spec import QueueingSpec
    from orchestrator.queueing.theory import Theory
    from orchestrator.report.listing import Listing

MS_PER_S = 1000.0


def curve(spec: QueueingSpec, points: Sequence[Point], source: str, as_json: bool) -> None:
    """Offered against carried load, and latency."""
    from orchestrator.report.listing import Head, Listing

    if as_json:
        print_json({"name": spec.name, "source": source, "points": points})
        return
    heads = [Head(name, True) for name in ("load", "offered/s", "carried/s", "mean ms", "p50", "p99", "queue", "drops")]
    rows = [
        (
            *(f"{each.load:g}", f"{each.offered_per_s:.4g}", _text(each.figures.throughput_per_s)),
            *(_text(figure, MS_PER_S) for figure in _curve_times(each.figures)),
            *(_text(each.figures.queue_length), _text(each.figures.drop_share, 100.0, " %")),
        )
        for each in points
    ]
    out().print(Listing(heads, rows, header_style="dim"))
    for point in points:
        for doubt in point.doubts:
            say(f"warning, load {point.load:g}: {doubt}")


def _curve_times(figures: ClassFigures) -> tuple[Figure, Figure, Figure]:
    return figures.sojourn_s.mean, figures.sojourn_s.p50, figures.sojourn_s.p99


def policies_table(spec: QueueingSpec, names: list[str], as_json: bool) -> None:
    """Latency and energy, by policy."""
    from orchestrator.queueing.experiment import as_data, compare_policies
    from orchestrator.report.listing import Head, Listing

    found = compare_policies(spec, names)
    if as_json:
        print_json([as_data(under, each) for under, each in found])
        return
    heads = [Head(name, True) for name in ("mean ms", "p50", "p99", "queue", "drops", "missed", "J a request")]
    rows = [
        (
            *(escape(name), *(_text(figure, MS_PER_S) for figure in _curve_times(each.total))),
            *(_text(each.total.queue_length), _text(each.total.drop_share, 100.0, " %")),
            _text(each.total.deadline_miss_share, 100.0, " %"),
            _text(each.total.energy_j_per_request) if each.total.energy_j_per_request.value else "",
        )
        for name, (_, each) in zip(names, found, strict=True)
    ]
    out().print(Listing(("policy", *heads), rows, header_style="dim"))
    for name, (_, each) in zip(names, found, strict=True):
        for doubt in each.doubts:
            say(f"warning, {name}: {doubt}")


def capacity_line(name: str, found: Capacity, source: str, as_json: bool, runs: Sequence[str] = ()) -> None:
    """`runs`: those that were kept on the way."""
    if as_json:
        print_json({"name": name, "source": source, **found.model_dump(), "runs": list(runs)})
        return
    target = f"p99 <= {found.target.p99 * MS_PER_S:g} ms and drops <= {found.target.drops:.2%}"
    rate = f"{_text(found.rate_per_s)} requests/s, {found.load:.1%} of what the servers can serve at most"
    out().print(f"{target}: up to {rate}", markup=False, soft_wrap=True)
    for doubt in found.doubts:
        say(f"warning: {doubt}")


def show_measured(spec: QueueingSpec, measured: Measured, source: str = "simulated") -> None:
    from orchestrator.queueing.network_oracle import no_product_form
    from orchestrator.queueing.oracle import theory_of
    from orchestrator.report.listing import Head, Listing

    heads = [Head(name, True) for name in ("requests", "mean ms", "p50", "p90", "p99", "p99.9", "queue", "drops")]
    rows: list[Any] = []
    lines = theory_of(spec, source)
    for name, each in measured.parts:
        rows += _rows(name, each)
        rows += [_theory_row(line) for line in lines if line.part == name]
    out().print(Listing(("class", "time", *heads), rows, header_style="dim", by_first=True))
    out().print(_summary(measured), markup=False, soft_wrap=True)
    say(f"{source}; warm-up left out: {measured.cut_s:.3g} s of {spec.duration:g} s")
    for reason in no_product_form(spec) if spec.stations else ():
        say(f"no theory beside it: {reason}")
    for doubt in measured.doubts:
        say(f"warning: {doubt}")


def _rows(name: str, figures: ClassFigures) -> list[tuple[str, ...]]:
    first = (str(figures.requests), figures.queue_length, figures.drop_share)
    rows: list[tuple[str, ...]] = []
    for label, times in figures.times:
        quantiles = (times.mean, times.p50, times.p90, times.p99, times.p99_9)
        others = ("", "", "") if rows else (first[0], _text(first[1]), _text(first[2], 100.0, " %"))
        rows.append((escape(name), label, others[0], *(_text(each, MS_PER_S) for each in quantiles), *others[1:]))
    return rows


def _theory_row(line: Theory) -> tuple[str, ...]:
    """Theory's mean waiting and sojourn beside those that were simulated."""
    p99 = "" if line.sojourn_p99_s is None else f"{line.sojourn_p99_s * MS_PER_S:.4g}"
    mean = f"{line.sojourn_s * MS_PER_S:.4g}"
    queued, drops = f"{line.queue_length:.4g}", f"{100 * line.drop_share:.3g} %"
    return (escape(line.part), f"[dim]sojourn, {line.name}[/]", "", mean, "", "", p99, "", queued, drops)


def _text(figure: Figure, scale: float = 1.0, unit: str = "") -> str:
    return figure.text(scale, unit)


def _summary(measured: Measured) -> str:
    total = measured.total
    words = [
        f"utilisation {_text(total.utilisation, 100.0, ' %')}",
        f"{_text(total.throughput_per_s)} requests/s served",
        f"deadlines missed {_text(total.deadline_miss_share, 100.0, ' %')}",
    ]
    if total.tokens_per_s is not None:
        words.append(f"{_text(total.tokens_per_s)} tokens/s")
    if total.energy_with_idle_j_per_request.value:
        served, whole = _text(total.energy_j_per_request), _text(total.energy_with_idle_j_per_request)
        words.append(f"{served} J a request while it is served, {whole} J with idle servers")
    return "; ".join(words)


def runs_table(runs: list[dict[str, Any]]) -> Listing:
    """Kept runs, a row each."""
    from orchestrator.report.listing import Head, Listing

    numbers = [Head(name, True) for name in ("requests", "req/s", "mean ms", "p99")]
    heads: list[Head | str] = ["run", "began", "source", "policy", *numbers]
    rows = [
        (
            escape(each["id"]), day(each["began_at"]), each["source"],
            escape(str(each["policy"])), str(each["requests"]), _number(each["throughput_per_s"]),
            *(_number(each["sojourn_s"][part], MS_PER_S) for part in ("mean", "p99")),
        )
        for each in runs
    ]  # fmt: skip
    return Listing(heads, rows, header_style="dim")


def _number(value: float | None, scale: float = 1.0) -> str:
    return "" if value is None else f"{value * scale:.4g}"


def show_kept(ledger: Ledger, run_id: str, as_json: bool) -> None:
    """A run on devices, measured anew from its requests."""
    from orchestrator.queueing.kept import data_of, read_run
    from orchestrator.queueing.measures import measure

    read = read_run(ledger, run_id)
    if as_json:
        print_json(data_of(read))
        return
    show_measured(read.kept.spec, measure(read.kept.spec, read.runs), read.row.source)
    for each in read.kept.servers:
        ended = f"; ended: {each.ended_by}" if each.ended_by else ""
        say(f"{each.server}: {each.device.serial} ({each.device.model}, {each.device.source}){ended}")
