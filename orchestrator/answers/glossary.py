"""Read what the words of the farm's outputs mean."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from orchestrator.model.errors import SetupError

PLACES = (
    Path(__file__).parents[2] / "docs" / "glossary.md",
    Path(sys.prefix) / "share" / "pocketfarm" / "glossary.md",
)
"""The glossary's places: in a checkout, and where an installation puts it."""
_ENTRY = re.compile(r"^\*\*(.+?)\*\*: (.+?)(?=\n\n|\Z)", re.M | re.S)


def glossary() -> dict[str, str]:
    """Word -> what it means, as the documentation has it, in plain text. Raises SetupError where it is not there."""
    for path in PLACES:
        if path.is_file():
            found = _ENTRY.findall(path.read_text(encoding="utf-8"))
            return {word: _plain(text) for word, text in found}
    raise SetupError("this installation has no glossary", remedy="install pocketfarm anew, or see docs/glossary.md")


def _plain(text: str) -> str:
    text = re.sub(r"\s*\(?\[[^\]]*\]\([^)]*\)\)?", "", text)  # links lead nowhere in a terminal
    return " ".join(re.sub(r"[*`]", "", text).split())
