"""A page's changes are told row by row where that is all, and a page is never put together wrongly."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from dashboards.web.parts import hash_of, news
from orchestrator.report.templates import coded

words = st.text(st.sampled_from("ab<>\"'&/tr \n"), max_size=8)


def page(rows: list[tuple[str, str]], rest: str = "") -> str:
    shown = "".join(f'<tr id="l-{escape(name)}"><td>{escape(text)}</td></tr>' for name, text in rows)
    return f"<h1>{escape(rest)}</h1><table>{shown}</table>"


def test_one_row_is_told_alone() -> None:
    told = json.loads(news(page([("A", "1"), ("B", "1")]), page([("A", "1"), ("B", "2")])))
    assert told == {"parts": {"l-B": '<tr id="l-B"><td>2</td></tr>'}}


def test_a_row_more_and_other_words_around_are_the_whole_page() -> None:
    before = page([("A", "1")])
    for now in (page([("A", "1"), ("B", "1")]), page([("B", "1")]), page([("A", "1")], "x")):
        assert json.loads(news(before, now)) == {"main": now}
    assert json.loads(news(None, before)) == {"main": before} and hash_of(before) != hash_of(now)


@given(st.lists(st.tuples(words, words), unique_by=lambda row: row[0]), st.lists(words), words, words)
def test_what_is_told_makes_the_new_page_of_the_old(
    rows: list[tuple[str, str]], texts: list[str], rest: str, other: str
) -> None:
    """Names and texts are any, as a template escapes them."""
    changed = [(name, text) for (name, _), text in zip(rows, texts, strict=False)] + rows[len(texts) :]
    before, now = page(rows, rest), page(changed, other)
    told = json.loads(news(before, now))
    made = told.get("main", before)
    for name, html in told.get("parts", {}).items():
        (old,) = [line for line in _rows(before) if line.startswith(f'<tr id="{name}"')]
        made = made.replace(old, html)
    assert made == now


def _rows(text: str) -> list[str]:
    return [f"<tr{part.partition('</tr>')[0]}</tr>" for part in text.split("<tr")[1:]]


def test_what_stands_between_backticks_is_code() -> None:
    assert coded("as `farm status <b>` says") == "as <code>farm status &lt;b&gt;</code> says"
    assert coded("one ` alone & <i>") == "one ` alone &amp; &lt;i&gt;"
