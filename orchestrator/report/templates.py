"""The templates of the reports: every name that comes from outside is escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from orchestrator.model.foreign import cleaned

FOLDER = Path(__file__).parent


class _Clean(Template):
    """A template whose page has no text of others that turns or hides what stands beside it."""

    def render(self, *args: Any, **values: Any) -> str:
        return cleaned(super().render(*args, **values))


def environment(*folders: Path) -> Environment:
    """Return a fresh environment, with the filter `coded`. `folders`: of templates; none: the reports'."""
    made = Environment(
        loader=FileSystemLoader(folders or [FOLDER, FOLDER / "nights"]), autoescape=True, auto_reload=False,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.template_class = _Clean
    made.filters["coded"] = coded
    return made


def coded(text: str) -> Markup:
    """A sentence for the page: what stands between backticks as code, the rest escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  (escaped before)
