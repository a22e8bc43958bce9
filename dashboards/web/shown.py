"""Small things that pages show: times, bars of outcomes, a word that is said once."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from orchestrator.report.templates import coded as coded

SAID = "farm_said"
LONGEST = 400
SAID_S = 30
DAY_S = 86400.0
ORDER = ("ok", "invalid", "killed", "failed", "lost", "cancelled", "running", "placed", "waiting", "held")
"""The order of words in a bar: what is over comes first."""
BAR_WIDTH = 100.0


def clock(at: float | None) -> Markup:
    """A time of day, with its date where that is another one."""
    if at is None:
        return Markup("")
    moment = time.localtime(at)
    form = "%H:%M:%S" if moment[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M"
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return Markup('<time datetime="{}">{}</time>').format(iso, time.strftime(form, moment))


def since(at: float | None) -> Markup:
    """A moment that the browser tells as the time that has passed."""
    if at is None:
        return Markup("")
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    text = time.strftime("%H:%M:%S", time.localtime(at))
    made = f'<time class="since" datetime="{iso}" data-since="{at:.0f}">{text}</time>'
    return Markup(made)  # noqa: S704  (of a number alone; a large fleet has hundreds)


def lasted(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def bar(counts: Mapping[str, int], label: str = "") -> Markup:
    """Jobs by state and outcome as a bar of parts; `label` is what a screen reader says before the numbers."""
    total, x, parts = sum(counts.values()), 0.0, []
    told = ", ".join(f"{counts[word]} {word}" for word in ORDER if counts.get(word))
    for word in ORDER:
        width = BAR_WIDTH * counts.get(word, 0) / total if total else 0.0
        if width:
            parts.append(Markup('<rect class="of-{}" x="{:.3f}" width="{:.3f}" height="8"/>').format(word, x, width))
        x += width
    name = f"{label}: {told or 'no jobs'}" if label else told or "no jobs"
    start = Markup(
        '<svg class="bar-of-jobs" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
    )
    return start.format(name) + Markup("").join(parts) + Markup("</svg>")


def over(counts: Mapping[str, int]) -> int:
    """Jobs that are over."""
    return sum(count for word, count in counts.items() if word in ORDER[:6])


def tell(request: Request, response: Response, text: str, *, bad: bool) -> None:
    """Have the next page tell this, which may be a secret that is shown once."""
    body = ("!" if bad else " ") + text[:LONGEST]
    value, secure = base64.urlsafe_b64encode(body.encode()).decode(), request.url.scheme == "https"
    response.set_cookie(SAID, value, max_age=SAID_S, httponly=True, samesite="strict", secure=secure)


def said(request: Request) -> tuple[str, bool] | None:
    """Return what is to be told, and whether it is bad news."""
    try:
        text = base64.urlsafe_b64decode(request.cookies.get(SAID, "")).decode()
    except (ValueError, binascii.Error):
        return None
    return (text[1:], text[0] == "!") if text else None
