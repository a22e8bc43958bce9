"""Text on a terminal: text of others (phones, files, hosts) may not steer it, whoever prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.errors import MarkupError
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

_STEERS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but tabs and ends of lines, marks that turn the direction of writing, and what is no text."""
SHOWN = "\ufffd"


def cleaned(text: str) -> str:
    """The text with a sign in place of each character that steers a terminal."""
    return text if text.isascii() and text.isprintable() else _STEERS.sub(SHOWN, text)


class Terminal(Console):
    """rich's console. Its own codes stand beside the text until they are written: so all text is cleaned, and links of
    others are none."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Segments of anything that is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(cleaned(segment.text), _unlinked(segment.style))

    def render_str(self, text: str, **options: Any) -> Text:
        """A text with its markup; as it is where that is none."""
        try:
            return super().render_str(text, **options)
        except MarkupError:
            return Text(text)


def _unlinked(style: Style | None) -> Style | None:
    return style.update_link(None) if style is not None and style.link else style
