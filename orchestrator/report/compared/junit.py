"""Write a comparison as JUnit XML, one test case a row, so that any CI shows it."""

from __future__ import annotations

from collections.abc import Collection
from xml.etree import ElementTree

from orchestrator.analysis.comparison import Compared
from orchestrator.model.foreign import cleaned

from .content import Content, cell, device, fails, notes
from .table import figures, verdict_words


def as_junit(content: Content, on: Collection[str]) -> bytes:
    """`on`: what fails a row; what is unknown otherwise is skipped."""
    failed = [fails(row, on) for row in content.rows]
    skipped = [row.verdict == "unknown" and not bad for row, bad in zip(content.rows, failed, strict=True)]
    counts = {
        "tests": str(len(failed)), "failures": str(sum(failed)), "errors": "0", "skipped": str(sum(skipped)),
    }  # fmt: skip
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": f"{content.a} to {content.b}", **counts})
    for row, bad, skip in zip(content.rows, failed, skipped, strict=True):
        name = f"{cell(row)} {row.metric} {row.basis}".strip()
        case = ElementTree.SubElement(suite, "testcase", {"classname": device(row), "name": name})
        words = verdict_words(row, len(content.rows))
        if bad:
            ElementTree.SubElement(case, "failure", {"message": words, "type": row.verdict}).text = _detail(row)
        elif skip:
            ElementTree.SubElement(case, "skipped", {"message": words})
    ElementTree.SubElement(suite, "system-out").text = "\n".join(notes(content))
    text = cleaned(ElementTree.tostring(suites, encoding="unicode"))
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}".encode()


def _detail(row: Compared) -> str:
    found = dict(zip(("A", "B", "ratio", "95 % interval"), figures(row), strict=True))
    told = ", ".join(f"{name} {text}" for name, text in found.items() if text)
    lines = [f"{name}: A {a}, B {b}" for name, (a, b) in row.differs.items()]
    return "\n".join(filter(None, [told, *lines, row.reason]))
