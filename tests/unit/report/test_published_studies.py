"""The studies' files against the studies' texts: each figure stands in its line, and a changed digit does not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from itertools import product, repeat
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
import yaml

from orchestrator import spec
from orchestrator.analysis.comparison.metrics import MIN_BLOCKS
from orchestrator.analysis.reproduction import figures_of
from orchestrator.model.experiment import Published, Study, StudyTable
from tests.integration.farm.two_phones.authors_phone import logged

ROOT = Path(__file__).parents[3]
TEXTS = ROOT.parent / "shared" / "seeds"
FILES = sorted((ROOT / "experiments" / "published").glob("study_*.yaml"))
NUMBER = re.compile(r"(?:\d+h ?)?(?:\d+m ?)?\d+s\b|\d+(?:\.\d+)?")
PLACE = re.compile(r"(\d+)-(\d+)(?::(\d+))?")
"""First and last line, and which number of theirs a sentence's figures begin with, counted from 0."""
SQUARE = re.compile(r"\b(\d+)x\1\b")


class Wrong(NamedTuple):
    table: str
    row: str
    column: str = ""


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    if not TEXTS.is_dir():
        pytest.skip("the studies' texts (shared/seeds) are not on this machine: their figures were not looked up")
    return {path.stem: (TEXTS / f"{path.stem}.txt").read_text().splitlines() for path in FILES}


def study(path: Path) -> Study:
    return Study.model_validate(yaml.safe_load(path.read_text()))


def numbers(line: str) -> list[str]:
    """Return the numbers of a line as they are written, `3x3` once; with all of a clock's parts."""
    return NUMBER.findall(SQUARE.sub(r"\1", line))


def where(values: list[str], found: list[str], starts: Iterable[int]) -> int | None:
    """Return behind which number the figures end that stand there next to each other, digit by digit; None: nowhere."""
    wanted = [value for value in values if value != "null"]
    return next((at + len(wanted) for at in starts if found[at : at + len(wanted)] == wanted), None)


def wrong(cells: list[dict[str, Any]], lines: list[str]) -> list[Wrong]:
    """Rows that the text does not have: each in its own line, with its name, where a table has a line for each; in a
    sentence one after the other."""
    found = []
    for table in cells:
        start, end, first = PLACE.fullmatch(table["lines"]).groups()  # type: ignore[union-attr]
        own = [line for line in lines[int(start) - 1 : int(end)] if numbers(line)]
        in_lines = len(own) == len(table["rows"]) > 1 and not table["table"].startswith(("figure", "section"))
        begin = int(first or 0)
        for (row, values), line in zip(table["rows"].items(), own if in_lines else repeat(" ".join(own)), strict=False):
            there = numbers(line)
            at = where(values, there, [begin] if first else range(0 if in_lines else begin, len(there)))
            if at is None or (in_lines and row.lower() not in line.lower()):
                found.append(Wrong(table["table"], row))
            begin = at or begin
    return found


def raw(path: Path) -> list[dict[str, Any]]:
    """The tables as they are written, digit by digit."""
    return list(yaml.load(path.read_text(), yaml.BaseLoader)["cells"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_figure_stands_in_the_text(path: Path, texts: dict[str, list[str]]) -> None:
    assert wrong(raw(path), texts[path.stem]) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_changed_digit_or_row_does_not_stand_there(path: Path, texts: dict[str, list[str]], seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(40):
        cells = raw(path)
        table = draw.choice(cells)
        row = draw.choice(list(table["rows"]))
        values = table["rows"][row]
        place = draw.choice([place for place, value in enumerate(values) if value != "null"])
        value = values[place]
        at = draw.choice([at for at, sign in enumerate(value) if sign.isdigit()])
        other = draw.choice([digit for digit in "123456789" if digit != value[at]])
        values[place] = value[:at] + other + value[at + 1 :]
        assert wrong(cells, texts[path.stem]), f"{table['table']}, {row}: {value} -> {values[place]}"
        values[place], row_too = value, draw.choice(list(table["rows"]))
        table["rows"][row], table["rows"][row_too] = table["rows"][row_too], values
        assert wrong(cells, texts[path.stem]) or table["rows"][row] == values, f"{table['table']}: {row} is {row_too}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_follows_from_other_figures_does_or_is_told_as_a_contradiction(path: Path) -> None:
    found = study(path)
    told = {(each.table, each.row, each.column) for each in found.contradictions if each.row and each.column}
    against = {place for place, value, least, most in _derived(path) if not least <= value <= most}
    assert against == told
    assert all(found.called(each.table) for each in found.contradictions)


def _derived(path: Path) -> Iterator[tuple[Wrong, float, float, float]]:
    """Each figure that follows from others, and within what it may lie where all were rounded, or cut off."""
    for one in study(path).derived:
        for part in (each for each in raw(path) if each["table"] == one.table):
            for row, values in part["rows"].items():
                known = {name: _within(value) for name, value in zip(part["columns"], values, strict=True)}
                if (ends := known[one.column]) and (value := values[list(known).index(one.column)]):
                    used = {name: own for name, own in known.items() if own and f"{{{name}}}" in one.formula}
                    ways = [dict(zip(used, way, strict=True)) for way in product(*used.values())]
                    found = [_formula(one.formula, way) for way in ways]
                    unit = (ends[1] - ends[0]) / 1.5
                    yield Wrong(part["table"], row, one.column), float(value), min(found) - unit, max(found) + unit / 2


def _within(value: str) -> tuple[float, float] | None:
    """Half a unit of the last digit less, or one more; whole numbers and clocks are exact."""
    if value == "null":
        return None
    seconds = StudyTable(table="t", title="t", columns={"c": ""}, rows={"r": (value,)}).rows["r"][0] or 0.0
    unit = 10.0 ** -len(value.partition(".")[2]) if "." in value else 0.0
    return seconds - unit / 2, seconds + unit


def _formula(text: str, known: dict[str, float]) -> float:
    return float(eval(re.sub(r"{(.*?)}", lambda name: repr(known[name[1]]), text)))


def test_the_page_counts_the_figures_of_each_study() -> None:
    page = (ROOT / "docs" / "howto" / "studies.md").read_text()
    for path in FILES:
        found = study(path)
        beside = {
            (id_of(each.part), each.row, each.column)
            for file in (ROOT / "experiments").glob(f"{path.stem}*.yaml")
            for each in figures_of(spec.load(file).published or Published(study=found))
            if each.part not in found.logs
        }
        cells = sum(value is not None for part in found.cells for row in part.rows.values() for value in row)
        (row,) = (line for line in page.splitlines() if line.startswith(f"| {path.stem[-1].upper()} | "))
        (told, count) = (int(re.findall(r"\d+", each)[0]) for each in row.split("|")[-3:-1])
        assert (told, count) == (cells, len(beside)), path.stem


def id_of(part: StudyTable) -> tuple[str, str, str]:
    return part.table, part.device, part.title


def test_logged_figures_are_those_of_the_logs() -> None:
    """Each layer's least mean of any g counts, summed up by fire module."""
    folder = ROOT.parent / "shared" / "data" / "mobile_convnet" / "galaxy_s7"
    if not folder.is_dir():
        pytest.skip("the authors' data (shared/data/mobile_convnet) are not on this machine")
    (table,) = study(FILES[-1]).logs
    files = {"Precise Parallel": "logs/[0-9]*.txt", "Imprecise Parallel": "logs_imprecise/[0-9]*.txt"}
    for row, pattern in {"Sequential": "logs/sequential.txt", **files}.items():
        runs = [{name: fmean(ms) for name, ms in logged(path).items()} for path in folder.glob(pattern)]
        best = {name: min(run[name] for run in runs if name in run) for run in runs for name in run}
        for (column, _), value in zip(table.columns.items(), table.rows[row], strict=True):
            prefix = column.lower().replace(" ", "")
            parts = [ms for name, ms in best.items() if name == prefix or name.startswith(f"{prefix}_")]
            assert value == pytest.approx(sum(parts), abs=0.0051), (row, column)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("study_*.yaml")), ids=lambda path: path.stem)
def test_each_file_measures_enough_blocks_for_its_verdicts(path: Path) -> None:
    asked = spec.load(path)
    assert asked.published is not None and asked.published.read.source
    proportions = any(one.place.over or one.table.base or one.metric == "best" for one in figures_of(asked.published))
    orders = any(each.expect not in ("", "by_memory") for each in asked.published.findings)
    assert asked.sampling.blocks >= MIN_BLOCKS or not (proportions or orders)
