"""Results as markdown: one table a network, and the ratios of ours to every peer over all of them."""

from __future__ import annotations

from collections.abc import Sequence

from .results import NetworkResult, Results, Row

NOTES = """\
Times are medians over interleaved rounds, in ms; +- is half the range of the rounds' medians, `least` the least sample,
which tells more where others load the machine (`load`: average of the last minute). A sample begins and ends with the
data in the host's memory where `copies` says inside; else the copies' own time is given there, and it is added wherever
a ratio compares with an engine that has them inside. `cold`: first process with empty caches, from its start (without
Python's imports) to its first output; `warm`: a later one. Ours compiles plans on the host beforehand (`host`). Error:
norm of the difference to the reference over the reference's norm."""


def render(results: Results) -> str:
    """The whole report."""
    about = results.machine
    head = f"{about['cpu']}, {about['cores']} cores; {'; '.join(_list(about['gpus'])) or 'no NVIDIA GPU'}; " + (
        f"commit {about['commit'] or 'unknown'}; {', '.join(_list(about['packages']))}"
    )
    parts = [head, ratio_table(results.networks), *(network_table(each) for each in results.networks), NOTES]
    return "\n\n".join(part for part in parts if part) + "\n"


def _list(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def network_table(result: NetworkResult) -> str:
    """Every contender, the fastest first; those without a time last, with the reason."""
    timed = sorted((row for row in result.rows if row.steady), key=_median_ms)
    lines = [
        f"### {result.network}" + (f" (load {result.load_average:.1f})" if result.load_average is not None else ""),
        "",
        "| contender | device | ms | +- | least | copies | error | cold | warm | host |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [_timed_line(row) for row in timed]
    lines += [
        f"| {row.contender} | {row.status}: {_cell(row.why)} | | | | | | | | |" for row in result.rows if not row.steady
    ]
    return "\n".join(lines)


def _timed_line(row: Row) -> str:
    steady = row.steady
    assert steady
    name = f"{row.contender} ({'; '.join(row.remarks)})" if row.remarks else row.contender
    copies = "inside" if row.copies_inside else _ms(row.copies_ms)
    set_up = [_ms(part.total_ms if part else None) for part in (row.cold, row.warm)]
    cells = [
        _cell(name), _cell(row.device), _ms(steady.median_ms), f"{steady.spread:.0%}", _ms(row.least_ms), copies,
        f"{row.error:.1e}", *set_up, _ms(row.host_ms),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def ratio_table(networks: Sequence[NetworkResult]) -> str:
    """Ours over the peer's time: below 1 ours is faster. Of ours tuned and untuned, the faster one of each API. Empty
    without a peer."""
    peers = list(dict.fromkeys(row.contender for each in networks for row in each.rows if not is_ours(row.contender)))
    lines = [f"| network | ours | ms | {' | '.join(peers)} |", f"|---|---|--:|{'--:|' * len(peers)}"]
    for each in networks:
        rows = {row.contender: row for row in each.rows if row.steady}
        for mine in best_of_ours(list(rows.values())):
            cells = [ratio_cell(mine, rows.get(peer)) for peer in peers]
            lines.append(f"| {each.network} | {mine.contender} | {_ms(_median_ms(mine))} | {' | '.join(cells)} |")
    return "\n".join(lines) if peers and len(lines) > 2 else ""


def is_ours(contender: str) -> bool:
    """Whether a row is of our engine."""
    return contender.startswith("ours")


def best_of_ours(rows: Sequence[Row]) -> list[Row]:
    """The faster one of tuned and untuned, for each API."""
    best: dict[str, Row] = {}
    for row in rows:
        api = row.contender.removesuffix(" tuned")
        if is_ours(api) and (api not in best or _median_ms(row) < _median_ms(best[api])):
            best[api] = row
    return list(best.values())


def ratio(mine: Row, peer: Row) -> float:
    """Ours over theirs, with our copies where theirs are inside."""
    copies = (mine.copies_ms or 0.0) if peer.copies_inside and not mine.copies_inside else 0.0
    return (_median_ms(mine) + copies) / _median_ms(peer)


def ratio_cell(mine: Row, peer: Row | None) -> str:
    return f"{ratio(mine, peer):.2f}" if peer else "-"


def _median_ms(row: Row) -> float:
    steady = row.steady
    assert steady
    return steady.median_ms


def _ms(value: float | None) -> str:
    """Three digits that count."""
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())
