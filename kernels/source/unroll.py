"""Write out the loops that a body marks `UNROLL`.

Drivers' own unrolling differs (and an array that is indexed in a loop that was not unrolled lives in memory, ten times
slower), so it is done in the text, the same for every API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEADER = re.compile(r"UNROLL for \(int (?P<name>\w+) = 0; (?P=name) < (?P<count>\w+); \+\+(?P=name)\) ")
_MARK = re.compile(r"[(){};]")


def unroll(text: str, constants: Mapping[str, int]) -> str:
    """Replace each `UNROLL for (int i = 0; i < COUNT; ++i) statement` by its iterations.

    COUNT is a number or a constant. A block keeps its braces, so that its variables stay its own.
    """
    begin = 0
    while (header := _HEADER.search(text, begin)) is not None:
        begin, end = header.start(), _statement_end(text, header.end())
        statement = text[header.end() : end]
        count = int(constants.get(header["count"], 0) or header["count"])
        name = re.compile(rf"\b{header['name']}\b")
        line = text[text.rfind("\n", 0, header.start()) + 1 : header.start()]
        indent = line if line.isspace() else " " * (len(line) - len(line.lstrip()))
        turns = [name.sub(str(turn), statement) for turn in range(count)]
        text = text[: header.start()] + f"\n{indent}".join(turns) + text[end:]
    return text


def _statement_end(text: str, start: int) -> int:
    """End of the statement at `start`: behind its `;`, or behind the brace that closes it."""
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += mark[0] in "({"
        depth -= mark[0] in ")}"
        if depth == 0 and mark[0] in "};":
            return mark.end()
    raise ValueError("a statement does not end")
