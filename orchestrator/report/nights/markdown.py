"""Write the morning report as Markdown: the same in words, for a chat, an issue or a mail."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.model.foreign import cleaned
from orchestrator.report.compared.markdown import plain

from .history import date
from .morning import Morning, grouped, headline, next_steps, raw_records, row_device, tiles, usable
from .page import NOTE, TITLES, levels, words

MOST_ROWS = 20


def morning_markdown(found: Morning) -> str:
    """Names from outside cannot make markup."""
    return cleaned("\n".join(_lines(found)) + "\n")


def _code(command: str) -> str:
    """Nothing ends it early."""
    return f" `{command.replace('`', chr(39))}`" if command else ""


def _lines(found: Morning) -> Iterable[str]:
    night = found.night
    yield f"## {plain(night.suite.name)}, {date(night.due_at)}"
    word, colon, why = usable(found).partition(":")
    yield f"\n**{word.capitalize()}**{plain(colon + why)}.\n\n**{plain(headline(found))}**\n"
    yield ", ".join(f"{number} {name}" for name, number, _ in tiles(found))
    if steps := next_steps(found):
        yield "\n### What to do next\n"
        yield from (f"- {plain(text)}{_code(command)}" for text, command in steps)
    groups = [(title, found.rows[name]) for name, title in TITLES.items() if found.rows[name]]
    if groups:
        yield f"\n{plain(NOTE)}"
    for title, rows in groups:
        yield f"\n### {title}\n"
        for row in rows[:MOST_ROWS]:
            metric = f"{row.compared.metric} {row.compared.basis}".strip()
            sides = f" ({plain(both)})" if (both := levels(row)) else ""
            said = plain(words(row, len(found.night.rows)))
            yield f"- {plain(f'{row_device(row)}: {found.named(row)}, {metric}')}: **{said}**{sides}"
        if len(rows) > MOST_ROWS:
            yield f"- and {len(rows) - MOST_ROWS} more"
    if night.missing:
        yield "\n### Devices that are missing\n"
        yield from (f"- {plain(each.device)}: {plain(each.reason)}" for each in night.missing)
    if changes := grouped(found):
        yield "\n### Changes of the last two weeks\n"
        for each in changes[:MOST_ROWS]:
            new, also = "" if each.settled else ", unsettled", f" ({each.also} changed)" if each.also else ""
            told = f"{each.device}: {each.what} {each.size}: {each.cause}{new}; {each.because}{also}"
            yield f"- {date(each.at)} {plain(told)}"
    if records := raw_records(night):
        yield "\n### Raw records\n"
        yield from (f"- `{command}`" for _, command in records)
