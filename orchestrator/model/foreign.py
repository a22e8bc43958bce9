"""Text of others (phones, files, hosts, people), before anybody reads it."""

from __future__ import annotations

import re

from .errors import SetupError

_STEERS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f\ud800-\udfff\ufffe\uffff]"
)
"""Control characters but tabs and ends of lines, marks that turn the direction of writing or have no width, and what is
no text. Those that join or part letters of a word (U+200C, U+200D) are writing."""
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
SHOWN = "\ufffd"


def cleaned(text: str) -> str:
    """The text with a sign in place of each character that steers a terminal, or that nobody sees."""
    return text if text.isascii() and text.isprintable() else _STEERS.sub(SHOWN, text)


def check_text(*given: object) -> None:
    """Raise SetupError where a person gave what is no text: bytes that are not UTF-8, half a character, a null."""
    for each in given:
        if isinstance(each, str) and _NO_TEXT.search(each):
            remedy = "write it in UTF-8; rename a file whose name is in another encoding"
            raise SetupError(f"{each[:80]!a} is no text", remedy=remedy)
