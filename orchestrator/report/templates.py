"""The templates of the reports: every name that comes from outside is escaped."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

FOLDER = Path(__file__).parent


def environment() -> Environment:
    """Return a fresh environment, with the filter `coded`."""
    made = Environment(
        loader=FileSystemLoader([FOLDER, FOLDER / "nights"]), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters["coded"] = coded
    return made


def coded(text: str) -> Markup:
    """A sentence for the page: what stands between backticks as code, the rest escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  (escaped before)
