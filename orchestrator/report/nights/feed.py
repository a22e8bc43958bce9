"""Tell the world of nights: a badge (SVG) of one, for a README, and a feed (Atom, RFC 4287) of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from xml.etree import ElementTree as Xml

from orchestrator.model.foreign import cleaned
from orchestrator.model.quantity import counted
from orchestrator.nightly import Night

from .morning import RANKS

ATOM, SVG = "http://www.w3.org/2005/Atom", "http://www.w3.org/2000/svg"
GOOD, BAD, UNSURE, GREY = "#1a7f37", "#b32424", "#8a5a00", "#4a5560"
"""The colours of words in white, with a contrast of at least 4.5."""
LETTER_PX, SPACE_PX = 7, 12
TOLD = tuple(each for each in RANKS if each not in ("same", "unavailable"))


def verdict(night: Night) -> str:
    """Return what a night found, in a few words: `2 worse, 1 unknown`, `all same`, `did not run`."""
    if night.outcome == "not_run" or not night.rows:
        return "did not run" if night.outcome == "not_run" else "nothing compared"
    counts = Counter(row.said for row in night.rows)
    told = [f"{counts[each]} {each}" for each in TOLD if counts[each]]
    told += ["partial"] * (night.outcome == "partial")
    return ", ".join(told) or "all same"


def badge(night: Night) -> str:
    """Draw the name of a night's suite, and beside it what the night found."""
    said, name = verdict(night), night.suite.name
    words = {row.said for row in night.rows}
    unsure = {"unknown", "missing", "not confirmed"} & words or night.outcome == "partial"
    colour = BAD if "worse" in words else GREY if not words else UNSURE if unsure else GOOD
    left, right = (len(text) * LETTER_PX + SPACE_PX for text in (name, said))
    title = f"{name}: {said} ({_day(night)})"
    size = {"width": str(left + right), "height": "20", "role": "img", "aria-label": title}
    root = Xml.Element("svg", {"xmlns": SVG, **size})
    Xml.SubElement(root, "title").text = title
    for text, at, wide, fill in ((name, 0, left, GREY), (said, left, right, colour)):
        Xml.SubElement(root, "rect", {"x": str(at), "width": str(wide), "height": "20", "fill": fill})
        font = {"font-family": "Verdana, DejaVu Sans, sans-serif", "font-size": "11", "text-anchor": "middle"}
        place = {"x": str(at + wide / 2), "y": "14", "fill": "#fff", "textLength": str(wide - SPACE_PX)}
        Xml.SubElement(root, "text", font | place).text = text
    return cleaned(Xml.tostring(root, encoding="unicode"))


def feed(nights: Sequence[Night], page: str) -> str:
    """Write an entry a night, the newest first. `page`: the address at which the newest is read."""
    root = Xml.Element("feed", {"xmlns": ATOM})
    name = nights[-1].suite.name
    _put(root, id=_id(page), title=f"Nights of {name}", updated=_moment(nights[-1]))
    Xml.SubElement(Xml.SubElement(root, "author"), "name").text = "pocketfarm"
    Xml.SubElement(root, "link", {"rel": "self", "href": f"{page}/feed.atom"})
    for night in reversed(nights):
        entry = Xml.SubElement(root, "entry")
        said = f"{_day(night)}: {verdict(night)}"
        _put(entry, id=_id(page + night.night_id), title=said, updated=_moment(night), summary=_summary(night))
        Xml.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": page})
    return f"<?xml version='1.0' encoding='utf-8'?>\n{cleaned(Xml.tostring(root, encoding='unicode'))}"


def _put(to: Xml.Element, **texts: str) -> None:
    for name, text in texts.items():
        Xml.SubElement(to, name).text = text


def _summary(night: Night) -> str:
    lost = [f"{each.device} is missing: {each.reason}" for each in night.missing]
    return "\n".join(
        [f"{counted(len(night.rows), 'row')} on {counted(len(night.devices), 'device')}.", *lost, *night.problems]
    )


def _id(text: str) -> str:
    """Return a name of the world's that tells no secret (RFC 4287, 4.2.6)."""
    return f"urn:sha256:{sha256(text.encode()).hexdigest()}"


def _day(night: Night) -> str:
    return f"{datetime.fromtimestamp(night.due_at, UTC):%Y-%m-%d}"


def _moment(night: Night) -> str:
    return datetime.fromtimestamp(night.ended_at or night.due_at, UTC).isoformat(timespec="seconds")
