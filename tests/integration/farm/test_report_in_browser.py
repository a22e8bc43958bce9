"""The HTML report as a browser lays it out: every chart is drawn, and nothing runs over the page's edge."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.report.content import Content
from orchestrator.report.html import render
from tests.servers import required
from tests.unit.agreement import made
from tests.unit.report.test_report import content

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--disable-dev-shm-usage",
)  # fmt: skip
PROBE = """<script>addEventListener("load", () => {
  const drawn = [...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().height > 20).length;
  const over = document.documentElement.scrollWidth - innerWidth;
  document.body.dataset.seen = `drawn=${drawn} over=${over}`;
})</script>"""


@pytest.mark.parametrize(("width", "of"), [(1200, content), (800, content), (800, made.content)])
def test_charts_are_drawn_and_nothing_overflows(tmp_path: Path, width: int, of: Callable[[], Content]) -> None:
    page = tmp_path / "report.html"
    report = render(of())
    assert "default-src 'none'" in report
    page.write_text(
        re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", "", report).replace("</body>", f"{PROBE}</body>")
    )
    command = [required("chromium"), *QUIET, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
    done = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, timeout=90, text=True)
    seen = re.search(r'data-seen="drawn=(\d+) over=(-?\d+)"', done.stdout)
    assert seen, done.stdout[:2000] + done.stderr[-2000:]
    assert int(seen[1]) == report.count("<svg") > 0
    assert int(seen[2]) <= 0
