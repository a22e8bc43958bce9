"""Results as markdown: one table a network, and the ratios of ours to every peer over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from .results import NetworkResult, Results, Row

NOTES = """\
Times are medians over interleaved rounds, in ms; +- is half the range of the rounds' medians, `least` the least sample,
which tells more where others load the machine (`load`: average of the last minute). A sample begins and ends with the
data in the host's memory where `copies` says inside; else the copies' own time is given there, and it is added wherever
a ratio compares with an engine that has them inside. `processor`: what all threads spent on an inference, waiting ones
that spin and a sample's copies among it. `cold`: first process with empty caches, from its start (without Python's
imports) to its first output; `warm`: a later one. Ours compiles plans on the host beforehand (`host`). Error:
norm of the difference to the reference over the reference's norm."""


TimeOf = Callable[[Row], float | None]


def render(results: Results) -> str:
    """The whole report."""
    about = results.machine
    head = f"{about['cpu']}, {about['cores']} cores; {'; '.join(_list(about['gpus'])) or 'no NVIDIA GPU'}; " + (
        f"commit {about['commit'] or 'unknown'}; {', '.join(_list(about['packages']))}"
    )
    parts = [head, *_ratio_tables(results.networks), *(network_table(each) for each in results.networks), NOTES]
    return "\n\n".join(part for part in parts if part) + "\n"


def _list(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def network_table(result: NetworkResult) -> str:
    """Every contender, the fastest first; those without a time last, with the reason."""
    timed = sorted((row for row in result.rows if row.steady), key=_median_ms)
    lines = [
        f"### {result.network}" + (f" (load {result.load_average:.1f})" if result.load_average is not None else ""),
        "",
        "| contender | device | ms | +- | least | processor | copies | error | cold | warm | host |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [_timed_line(row) for row in timed]
    lines += [
        f"| {row.contender} | {row.status}: {_cell(row.why)} | | | | | | | | | |"
        for row in result.rows
        if not row.steady
    ]
    return "\n".join(lines)


def _timed_line(row: Row) -> str:
    steady = row.steady
    assert steady
    name = f"{row.contender} ({'; '.join(row.remarks)})" if row.remarks else row.contender
    copies = "inside" if row.copies_inside else _ms(row.copies_ms)
    set_up = [_ms(part.total_ms if part else None) for part in (row.cold, row.warm)]
    cells = [
        _cell(name), _cell(row.device), _ms(steady.median_ms), f"{steady.spread:.0%}", _ms(row.least_ms),
        _ms(_processor_ms(row)), copies, f"{row.error:.1e}", *set_up, _ms(row.host_ms),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _ratio_tables(networks: Sequence[NetworkResult]) -> list[str]:
    """Return ratios by medians; where the processor's time is known by that and by least samples, too."""
    found = [ratio_table(networks)]
    if any(row.processor_ms for each in networks for row in each.rows):
        for title, time_ms in (("least samples", _least_ms), ("processor's time", _processor_ms)):
            found.append(f"By {title}:\n\n{ratio_table(networks, time_ms)}")
    return found


def ratio_table(networks: Sequence[NetworkResult], time_ms: TimeOf | None = None) -> str:
    """Ours over the peer's time: below 1 ours is faster. Of ours tuned and untuned, the faster one of each API. Empty
    without a peer. At the end the median and the largest ratio of several networks."""
    time_ms = time_ms or _median_ms
    peers = list(dict.fromkeys(row.contender for each in networks for row in each.rows if not is_ours(row.contender)))
    lines = [f"| network | ours | ms | {' | '.join(peers)} |", f"|---|---|--:|{'--:|' * len(peers)}"]
    ratios: dict[str, dict[str, list[float]]] = {}
    for each in networks:
        rows = {row.contender: row for row in each.rows if row.steady}
        for mine in best_of_ours(list(rows.values())):
            found = [ratio(mine, rows[peer], time_ms) if peer in rows else None for peer in peers]
            lines.append(_line(each.network, mine.contender, _ms(time_ms(mine)), *map(_ratio_cell, found)))
            own = ratios.setdefault(mine.contender, {peer: [] for peer in peers})
            for peer, value in zip(peers, found, strict=True):
                own[peer] += [] if value is None else [value]
    for title, of in (("median", median), ("largest", max)) if len(networks) > 1 else ():
        for contender, own in ratios.items():
            lines.append(
                _line(title, contender, "", *(_ratio_cell(of(own[peer]) if own[peer] else None) for peer in peers))
            )
    return "\n".join(lines) if peers and len(lines) > 2 else ""


def is_ours(contender: str) -> bool:
    """Return whether a row is of our engine."""
    return contender.startswith("ours")


def best_of_ours(rows: Sequence[Row]) -> list[Row]:
    """The faster one of tuned and untuned, for each API."""
    best: dict[str, Row] = {}
    for row in rows:
        api = row.contender.removesuffix(" tuned")
        if is_ours(api) and (api not in best or _median_ms(row) < _median_ms(best[api])):
            best[api] = row
    return list(best.values())


def ratio(mine: Row, peer: Row, time_ms: TimeOf | None = None) -> float | None:
    """Ours over theirs, with our copies where theirs are inside; None where a time is not known."""
    ours, theirs = (time_ms or _median_ms)(mine), (time_ms or _median_ms)(peer)
    inside = time_ms is _processor_ms  # it has all that the process does between samples
    copies = (mine.copies_ms or 0.0) if peer.copies_inside and not mine.copies_inside and not inside else 0.0
    return (ours + copies) / theirs if ours is not None and theirs else None


def _ratio_cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _median_ms(row: Row) -> float:
    steady = row.steady
    assert steady
    return steady.median_ms


def _least_ms(row: Row) -> float | None:
    return row.least_ms


def _processor_ms(row: Row) -> float | None:
    return median(row.processor_ms) if row.processor_ms else None


def _ms(value: float | None) -> str:
    """Three digits that count."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
