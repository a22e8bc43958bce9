"""Every table of every command can be read at 40, 80 and 120 columns, and is not cut in a file."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import RenderableType
from rich.text import Text

from farm.cli.engine import plan_summary, profile, tuning
from farm.cli.experiments import live
from farm.cli.experiments.experiment_rows import show_all, show_one
from farm.cli.experiments.job import show_story
from farm.cli.fleet.devices import table_of
from farm.cli.fleet.lifecycle import table_of as checks
from farm.doctor import examine
from kernels.compile import compile_graph
from kernels.frontend.networks import NETWORKS
from kernels.options import Limits, Options
from orchestrator.answers.story import Story, Try
from orchestrator.model.enrolment import NodeFact
from orchestrator.model.live.waiting import WaitKind, WaitReason
from orchestrator.report import console, wording
from orchestrator.report.listing import GAP, Head, Listing, Plain
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make
from tests.unit.report import everything
from tests.unit.workers.test_enrolment_store import profile as enrolment
from tests.widths import UNBOUNDED, check, drawn

from .conftest import Run
from .test_live import lane, snapshot
from .test_tune import entry

FIRSTS = frozenset(
    {"device", "warning", "layer", "network", "configurations", "check", "nodes", "experiment", "condition", "#"}
)


def results(mode: str) -> RenderableType:
    return console.render(everything.content(blocks=3, mode=mode), setup=True)


def plan() -> RenderableType:
    return plan_summary.render(compile_graph(NETWORKS["lenet"](1), Options("vulkan"), Limits()).plan)


def watched() -> RenderableType:
    busy = lane("virtual-galaxy_s7-0", "compiling", done=1, jobs=(3, 36))
    waits = lane("R58M91XKPVJ", why="battery at 64 %, the experiment wants at least 70 %", jobs=(0, 12))
    return live.render(snapshot(busy, waits, ok=3, failed=1, waiting=44), "energy-of-squeezenet", live.Pace())


def devices() -> RenderableType:
    busy = make.device("127.0.0.1:5556", battery_percent=64.0, battery_temp_c=31.25, reason="storage is nearly full")
    return table_of([busy, make.device("R58M91XKPVJ")])


def shown_profile() -> RenderableType:
    path = "/sys/class/power_supply/battery/current_now"
    nodes = (NodeFact(path=path, error="permission denied"),)
    return profile.render(enrolment(permissions={"read kgsl": True, "settings": False}, nodes=nodes))


TABLES: dict[str, Callable[[], RenderableType]] = {
    "results, steady": lambda: results("steady"),
    "results, cold": lambda: results("cold"),
    "results, sustained": lambda: results("sustained"),
    "plan": plan,
    "watch": watched,
    "devices": devices,
    "profile": shown_profile,
    "doctor": lambda: checks(examine(Settings())),
    "tune": lambda: tuning.table([entry("conv 3x3 1x64x56x56 -> 1x64x56x56", f"opencl | Adreno {n}") for n in (1, 2)]),
}


@pytest.mark.parametrize("name", TABLES)
def test_no_line_is_too_long_and_no_word_is_broken(name: str) -> None:
    what = TABLES[name]()
    check(lambda width: drawn(what, width), FIRSTS)


def test_a_command_keeps_to_the_width(farm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def render(width: int) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        return farm("networks")[1]

    check(render, FIRSTS)


def test_a_result_takes_one_line_at_80_columns() -> None:
    """All that holds for each row of a device, or of all devices, is above them."""
    content = everything.content(blocks=3)
    lines = drawn(console.results(content), 80).splitlines()
    told = [line for line in lines if line.startswith("  ") and "/3 " in f"{line} "]
    assert len(told) == len(content.summaries)
    headings = [line for line in lines[1:] if line not in told]
    assert len(headings) <= 6 * len(everything.PHONES)
    shared = [n for n, doubt in enumerate(content.doubts, 1) if doubt.results == len(content.summaries)]
    whole = drawn(console.render(content), 80)
    assert not shared or "warnings of every result:" in whole
    assert "Set-up: cold" not in whole and "farm results --setup" in whole


WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=0, max_size=9).map(" ".join)


@example(
    rows=[("", "a aaaaaaaaaaaa a a a", "0", ""), ("", "a aaaaaaaaaaaa a a a", "0000000", "")], width=20, by_first=True
)
@given(
    rows=st.lists(st.tuples(WORDS, WORDS, st.from_regex(r"[0-9]{1,9}", fullmatch=True), WORDS), min_size=1, max_size=5),
    width=st.integers(20, 130),
    by_first=st.booleans(),
)
def test_any_row_is_whole_at_any_width(rows: list[tuple[str, ...]], width: int, by_first: bool) -> None:
    listing = Listing(("one", "two", Head("n", True), ""), rows, by_first=by_first)
    text = drawn(listing, width)
    assert max(map(len, text.splitlines())) <= width
    told = Counter(word.rstrip(":") for word in text.split())
    assert Counter(word for row in rows for word in " ".join(row[1:]).split()) - told == Counter()
    assert {word for row in rows for word in row[0].split()} <= set(told)


@pytest.mark.parametrize("colours", [False, True])
@pytest.mark.parametrize(
    "odd", ["plain", "\u8868 wide  ", "two\nlines", "a\ttab", "a\x07bell", "[bold]marked[/bold]", "", "x" * 70]
)
def test_many_rows_look_as_few_do(monkeypatch: pytest.MonkeyPatch, odd: str, colours: bool) -> None:
    cells = [(odd, "1.5", "ab"), ("c", "10.25", odd)] * 2
    if colours:
        rows = [
            [Text.from_markup(cell, style=style) for cell in row]
            for row, style in zip(cells, ("", "yellow") * 2, strict=True)
        ]
    else:
        rows = [list(map(Text.from_markup, row)) for row in cells]
    plain = [Plain(row, style) for row, style in zip(cells, ("", "yellow" if colours else "") * 2, strict=True)]
    for width in (20, 80, UNBOUNDED):
        for kind in (rows, plain) if "[" not in odd else (rows,):
            shown = []
            for many in (0, len(rows)):
                monkeypatch.setattr("orchestrator.report.listing.MANY", many)
                shown.append(drawn(Listing(("one", Head("n", True), ""), kind, indent=1), width))
            assert shown[0] == shown[1], f"at {width} columns"
        assert "[" in odd or shown[0] == drawn(Listing(("one", Head("n", True), ""), rows, indent=1), width)


def test_figures_stand_below_each_other() -> None:
    lines = drawn(Listing(("", Head("ms", True)), [("a", "1.5"), ("b", "10.25")]), 40).splitlines()
    assert lines == [f"{'':1}{'':{GAP}}{'ms':>5}", f"a{'':{GAP}}{'1.5':>5}", f"b{'':{GAP}}10.25"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("battery_slope", 0.07911341574994205, "0.07911"), ("memory_bytes", 2147483648, "2048.0 MiB"),
        ("names", ["a", "[b]"], "a, [b]"), ("cores", 8, "8"),
    ],
)  # fmt: skip
def test_facts_are_rounded_for_people(name: str, value: object, words: str) -> None:
    assert wording.fact(name, value) == words
    assert wording.fact("seen_at", 1795344525.3972616).startswith("2026-11-2")


@pytest.mark.parametrize("columns", ["", "80"])
def test_a_file_has_whole_rows(farm: Run, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = farm("networks")[1].splitlines()
    assert all(any(line.startswith(name + " ") for line in lines) for name in ("lenet", "squeezenet_v1_0"))
    assert (max(map(len, lines)) <= 80) or not columns


def test_what_an_experiment_waits_for_keeps_to_the_width(
    seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of devices, experiments and people may be long; so may a story of a job."""
    chosen = random.Random(seed)

    def name(most: int = 60) -> str:
        return "".join(chosen.choices("abcdefgh-_.", k=chosen.randrange(5, most)))

    told = {
        "experiment": f"e-{name(20)}", "name": name(), "submitted_at": 1e9, "submitter": name(), "jobs": 9,
        "finished": False, "counts": {"ok": 1, "waiting": 8}, "origin": f"is of {name()}, by {name()}",
        "ends": {"at": None, "earliest": None, "latest": None, "unknown": f"{name()} is {name()}", "assuming": ()},
        "waiting": [{"kind": "held", "reason": f"held by {name()} for {name()}", "devices": [name()], "jobs": 8}],
        "stopped": [{"why": f"{name()} says {name()}", "devices": [name(), name()]}], "exclusions": [],
        "not_ok": [
            {"outcome": "lost", "label": name(), "devices": [name()], "attempts": 2, "cause": name(),
             "reasons": [name()]}
        ],
    }  # fmt: skip
    again = Try(1, name(), name(), 1, 1e9, 1e9, "lost", name(), (name(),), (), (), (), (), (name(),), None)
    waits = WaitReason(kind=WaitKind.HELD, text=f"held by {name()} for {name()}")
    story = Story("j-1", told["experiment"], name(), "waiting", "", "", (), 1e9, None, (again,), waits)  # type: ignore
    shows = (partial(show_one, told), partial(show_all, [told]), partial(show_story, story))
    for width, show in product((60, 80, 120), shows):
        monkeypatch.setenv("COLUMNS", str(width))
        show()
        shown = capsys.readouterr().out
        assert shown and [line for line in shown.splitlines() if len(line) > width] == []
