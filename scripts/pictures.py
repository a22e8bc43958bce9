"""Draw the pictures of the documentation again, from real runs: `make pictures`, some minutes on a machine at rest.

docs/demo.svg: the tables that the demo ends with. docs/mine.svg, docs/report.png and docs/pages.png: what
`experiments/mine.yaml` gives on four virtual phones and this machine, and the fleet while it runs.
tests/test_pictures.py says when they have to be drawn again.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from farm.endpoints import read, settings_for
from orchestrator.coordination.client import client_of
from orchestrator.coordination.inventory import Inventory

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PHONES = 4
READY_S = 120.0
DONE = 9
"""The blocks of 42 that are done when the fleet is photographed: pages take some seconds to draw."""
WIDTH, HEIGHT = 1100, 1500
"""The size of the report's picture, in pixels: the page from its head on."""
COLORS = 64
HEADINGS = "headings"
"""Name of the text in docs/report.png that lists the headings of the page it was taken of."""
BROWSER = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-sync", f"--window-size={WIDTH},{HEIGHT}",
    "--virtual-time-budget=5000",
)  # fmt: skip


def main() -> None:
    if not (browser := shutil.which("chromium")):
        sys.exit("pictures: chromium is missing\nremedy: sudo apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        demo, mine = Path(temporary, "demo"), Path(temporary, "mine")
        _farm("demo", state=demo)
        _farm("results", "latest", "--svg", str(DOCS / "demo.svg"), state=demo)
        with _farm_up(mine):
            _farm("run", "experiments/mine.yaml", state=mine)
            _photograph_fleet(browser, mine, DOCS / "pages.png")
            _farm("watch", "latest", state=mine)
            _farm("results", "latest", "--svg", str(DOCS / "mine.svg"), state=mine)
            page = Path(temporary, "report.html")
            _farm("report", "latest", "-o", str(page), state=mine)
        _photograph(browser, page, DOCS / "report.png")
    print("drawn: docs/demo.svg, docs/mine.svg, docs/pages.png, docs/report.png")


def _farm(*arguments: str, state: Path) -> str:
    command = [sys.executable, "-m", "farm.cli", *arguments, "--state", str(state)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def _farm_up(state: Path) -> Iterator[None]:
    """A farm whose virtual phones and workstation are ready."""
    command = [sys.executable, "-m", "farm.cli", "up", "--virtual", str(PHONES), "--state", str(state)]
    with subprocess.Popen(command, cwd=ROOT) as farm:
        try:
            limit = time.monotonic() + READY_S
            while _ready(state) <= PHONES:
                if farm.poll() is not None or time.monotonic() > limit:
                    sys.exit("pictures: the farm did not come up; see above")
                time.sleep(1.0)
            yield
        finally:
            farm.terminate()


def _ready(state: Path) -> int:
    command = [sys.executable, "-m", "farm.cli", "devices", "--json", "--state", str(state)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    return sum(device["state"]["health"] == "ready" for device in found)


def _done(state: Path) -> int:
    """Blocks that have gone well."""
    return sum(int(each["counts"].get("ok", 0)) for each in json.loads(_farm("status", "--json", state=state)))


def _photograph(browser: str, page: Path, picture: Path) -> None:
    """The head of a page in few colours; its headings go into the picture's text."""
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        raw = Path(temporary, "raw.png")
        options = [f"--user-data-dir={temporary}/profile", f"--screenshot={raw}"]
        subprocess.run([browser, *BROWSER, *options, page.as_uri()], check=True, capture_output=True, timeout=120)
        told = PngInfo()
        told.add_text(HEADINGS, "\n".join(headings(page.read_text())))
        Image.open(raw).convert("RGB").quantize(COLORS).save(picture, optimize=True, pnginfo=told)


def _photograph_fleet(browser: str, state: Path, picture: Path) -> None:
    """The page of the fleet in the midst of its work."""
    found = read(state)
    if found is None:
        sys.exit("pictures: the farm has ended")
    with client_of(settings_for(state)) as redis:
        while _done(state) < DONE or len(Inventory(redis).progress()) < PHONES:
            time.sleep(0.2)
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        raw = Path(temporary, "raw.png")
        options = [f"--user-data-dir={temporary}/profile", f"--screenshot={raw}", "--window-size=1280,620"]
        quiet = [each for each in BROWSER if not each.startswith(("--window", "--virtual"))]
        command = [browser, *quiet, *options, "--timeout=2500", found.pages_url]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        Image.open(raw).convert("RGB").quantize(COLORS).save(picture, optimize=True)


def headings(page: str) -> list[str]:
    """Texts of a page's headings of the second level."""
    return [re.sub(r"<[^>]+>", "", text).strip() for text in re.findall(r"<h2[^>]*>(.*?)</h2>", page, re.DOTALL)]


if __name__ == "__main__":
    main()
