"""`farm compare` on a narrow terminal: the answer first, what decides before the rest, two lines a row at most."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pytest

from orchestrator.analysis.comparison import Compared, SideRow, compare
from orchestrator.ledger import Ledger
from orchestrator.model.device import Source
from orchestrator.report import compared, listing
from orchestrator.report.compared.content import TITLES, Content, word
from tests.unit.imports.conftest import Farm
from tests.widths import drawn

from .made import measured, row
from .nights import night

pytestmark = pytest.mark.unit

NETWORKS = ("lenet", "squeezenet_v1_1", "mobilenet_v2")


def lines_a_row(text: str, rows: int, width: int) -> float:
    """Return the lines a row between the counts and the notes, titles by verdict and notes by number left out."""
    lines = text[: text.index("\nA, B: medians")].splitlines()
    assert max(map(len, lines)) <= width
    at = next(number for number, line in enumerate(lines) if line.startswith("A "))
    return sum(line.startswith("  ") for line in lines[at:]) / rows


def test_a_real_comparison_has_two_lines_a_row_at_80_columns(
    farm: Farm, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    random, names = Random(seed), [[], []]
    for number, network in enumerate(NETWORKS):
        slow = {"cpu": random.choice((1.0, 1.004, 1.2)), "opencl": random.choice((0.8, 1.0, 1.01))}
        for side, own in enumerate(names):
            failing = random.choice(("", "cpu")) if side else ""
            spread = {"slow": slow, "failing": failing, "build": "8.1", "cycles": 218} if side else {}
            own.append(night(ledger, 10 * side + number, network=network, blocks=random.choice((3, 6)), **spread))
    asked = ("compare", ",".join(names[0]), ",".join(names[1]))
    found = json.loads(farm(*asked, "--json")[1])
    monkeypatch.setenv("COLUMNS", "80")
    text = farm(*asked, "--all")[1]
    assert lines_a_row(text, len(found), 80) <= 2
    head = " ".join(text[: text.index("\nA ")].split())
    assert head.startswith("usable") or head.startswith("not usable")
    assert head.endswith(f" same{', ' if 'unavailable' in head else ''}") or f"{len(found)} rows, " in head
    assert "times A's" in head or "No difference between A and B is proven." in head


def drawn_sides(random: Random) -> tuple[list[SideRow], list[SideRow]]:
    """Cells of long names and options, even or noisy, of few blocks or many, failed, not run, of one phone's gauge."""
    sides: tuple[list[SideRow], list[SideRow]] = ([], [])
    for number in range(12):
        name = "".join(random.choice("abcdefgh-") for _ in range(random.choice((5, 25, 70))))
        options = {f"axis_{n}": random.randrange(3) for n in range(random.choice((0, 2, 6)))}
        more = {"device": name, "network": f"net {number}", "options": {**options, "shared": "so"}}
        metric = random.choice(("latency", "energy/net gauge device battery gauge", "setup/not cached", "memory/pss"))
        for side, own in enumerate(sides):
            if random.random() < 0.15:
                continue
            if random.random() < 0.15:
                own.append(row(None, problem="killed: out_of_memory", **more))
                continue
            spread, middle = random.choice((0.001, 0.05, 0.8)), 1e-3 * random.choice((1.0, 1.2 if side else 1.0))
            values = [middle * random.lognormvariate(0, spread) for _ in range(random.choice((1, 4, 12)))]
            for each in measured(values, random.choice(("night-1", f"night-{side}")), 20.0 * side, **more):
                each.source = Source.VIRTUAL
                each.values = {metric: each.values["latency"]}
                own.append(each)
    return sides


def shown(content: Content, width: int) -> tuple[str, Sequence[Sequence[Compared]]]:
    lines, left = compared.lines_of(content, 40, every=True)
    assert left == 0
    part = listing.part(compared.section(content, lines), len(lines), list(compared.narrow(content, lines)))
    return drawn(part, width), lines


@pytest.mark.parametrize("width", [80, 100])
def test_any_row_has_two_lines_and_what_decides_comes_first(width: int, seed: int) -> None:
    random = Random(seed)
    for _ in range(30):
        content = Content("a", "b", compare(*drawn_sides(random)))
        text, lines = shown(content, width)
        assert lines_a_row(f"{text}\nA, B: medians", len(lines), width) <= 2
        titles = [line for line in text.splitlines() if line.partition(":")[0] in TITLES.values()]
        order = [next(rank for rank, title in TITLES.items() if line.startswith(title)) for line in titles]
        assert order == [rank for rank in TITLES if any(word(each) == rank for each in content.rows)]
        said = " ".join(text.split())
        for line in lines:
            decided = line[0].verdict in ("different", "same") or line[0].needs_blocks is not None
            assert decided or line[0].reason in said


def test_an_unknown_row_beside_a_clear_interval_says_why(seed: int) -> None:
    """Every form says it; of few rows it may be proven."""
    random, seen = Random(seed), 0
    for _ in range(30):
        content = Content("a", "b", compare(*drawn_sides(random)))
        _, lines = shown(content, 80)
        below = {title: [each.words for each in own] for title, own in compared.narrow(content, lines)}
        clear = [row for row in content.rows if row.verdict == "unknown" and _is_clear(row)]
        seen += len(clear)
        for each in clear:
            more = each.interval is not None and each.interval.low > 1
            way = (
                {"latency": "slower", "setup": "slower"}.get(each.metric, "more")
                if more
                else ({"latency": "faster", "setup": "faster"}.get(each.metric, "less"))
            )
            why = f"not proven for a table of {len(content.rows)} rows"
            for form in (
                compared.as_html(content),
                compared.as_markdown(content),
                compared.as_junit(content, ()).decode(),
            ):
                assert f"unknown: {way}, {why}" in form
            assert any(words.startswith(way) for words in below[f"Unknown: {why}"])
    assert seen


def _is_clear(row: Compared) -> bool:
    return row.interval is not None and not row.interval.low <= 1 <= row.interval.high


def test_a_wide_terminal_has_a_line_a_row(seed: int) -> None:
    content = Content("a", "b", compare(*drawn_sides(Random(seed))))
    text, lines = shown(content, 10_000)
    assert len(text.splitlines()) == 2 + len(lines)
