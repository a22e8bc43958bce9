"""The HTML report as a browser lays it out: every chart is drawn, and nothing runs over the page's edge."""

from __future__ import annotations

import json
import re
import subprocess
from html import escape, unescape
from pathlib import Path

from orchestrator.report.html import render
from tests.servers import required
from tests.unit.agreement import made
from tests.unit.report import everything
from tests.unit.report.test_report import content

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--disable-dev-shm-usage",
)  # fmt: skip
PROBE = """<script>addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, all = (what) => [...page.querySelectorAll(what)];
    const drawn = all("svg").filter(s => s.getBoundingClientRect().height > 20).length;
    const over = page.documentElement.scrollWidth - page.documentElement.clientWidth;
    const silent = all(".scroll").filter(box => box.scrollWidth > box.clientWidth + 1
      && !frame.contentWindow.getComputedStyle(box).backgroundImage.includes("gradient")).length;
    const cut = all("table, svg").filter(each => !each.closest(".scroll")).length;
    const open = all("svg text").map(text => text.getBoundingClientRect().height).filter(height => height > 0);
    return {drawn, over, silent, cut, least_px: Math.min(...open)};
  });
  document.body.dataset.seen = JSON.stringify(seen);
})</script>"""
LEAST_PX = 7
"""Height of a line of the smallest text in a figure."""


SHOWN = (content, (1200, 800, 390)), (everything.content, (390,)), (made.content, (800,))


def test_charts_are_drawn_and_nothing_overflows_unseen(tmp_path: Path) -> None:
    """Parts wider than the page scroll, and have a shadow where there is more; text in figures stays readable."""
    page, frames, drawn = tmp_path / "report.html", "", list[int]()
    for of, widths in SHOWN:
        whole = of()
        report = render(whole, whole.records)
        assert "default-src 'none'" in report
        inner = escape(re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", "", report))
        frames += "".join(f'<iframe srcdoc="{inner}" width="{width}" height="900"></iframe>' for width in widths)
        drawn += [report.count("<svg")] * len(widths)
    page.write_text(f"<!doctype html>{frames}{PROBE}")
    command = [required("chromium"), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1000"]
    done = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, timeout=90, text=True)
    found = re.search(r'data-seen="([^"]+)"', done.stdout)
    assert found, done.stdout[:2000] + done.stderr[-2000:]
    seen = json.loads(unescape(found[1]))
    assert [each["drawn"] for each in seen] == drawn and min(drawn) > 0
    for each in seen:
        assert each["over"] <= 0 and each["silent"] == each["cut"] == 0
        assert each["least_px"] >= LEAST_PX
