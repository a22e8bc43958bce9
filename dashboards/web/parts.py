"""Tell a browser what changed on a page: rows with an id of their own one by one, else the whole."""

from __future__ import annotations

import hashlib
import json
import re

_PART = re.compile(r'<(tr|li|p|div) id="(l-[^"]+)"(?:(?!</\1>).)*</\1>', re.DOTALL)
"""An element with an id of the page's own; they do not lie in each other."""


def hash_of(main: str) -> str:
    """Names a state of a page."""
    return hashlib.sha256(main.encode()).hexdigest()[:16]


def news(before: str | None, now: str) -> str:
    """JSON: `parts`, id -> its new HTML, where the rest is the same; else `main`."""
    if before is not None:
        old, new = _split(before), _split(now)
        if old[0] == new[0]:
            changed = {name: html for name, html in new[1].items() if old[1][name] != html}
            return json.dumps({"parts": changed})
    return json.dumps({"main": now})


def _split(main: str) -> tuple[str, dict[str, str]]:
    """Return what stands around the parts, and the parts."""
    parts = {match[2]: match[0] for match in _PART.finditer(main)}
    return _PART.sub(lambda match: f"<{match[2]}>", main), parts
