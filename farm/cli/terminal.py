"""Text on a terminal: text of others (phones, files, hosts) may not steer it, whoever prints it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.errors import MarkupError
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from orchestrator.model.foreign import cleaned


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
