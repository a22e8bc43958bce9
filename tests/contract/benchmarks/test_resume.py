"""A benchmark that was cut short measures what is left, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.source_tree import ROOT


def benchmark(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", f"benchmarks.engine.{name}", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=250, check=False)


def after_losing_a_row(path: Path, name: str, *words: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """Rows of a whole run; rows after its last one is lost and the benchmark goes on, and what it said of progress."""
    whole = benchmark(name, *words, "-o", str(path))
    assert whole.returncode == 0, whole.stderr
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({**raw, "found": raw["found"][:-1]}))
    done = benchmark(name, *words, "-o", str(path), "--resume")
    assert done.returncode == 0, done.stderr
    return raw["found"], json.loads(path.read_text())["found"], done.stderr


def test_products_measures_what_is_left(agent_binary: Path, tmp_path: Path) -> None:
    words = ("--sizes", "16", "--api", "opencl", "--products", "tiled,blocked", "--agent", str(agent_binary))
    whole, again, said = after_losing_a_row(tmp_path / "raw.json", "products", *words)
    assert [row.get("choice", row["api"]) for row in whole] == ["library", "tiled 8x4x1x1x4", "blocked 16x16"]
    assert again[:-1] == whole[:-1] and again[-1]["choice"] == whole[-1]["choice"]
    assert again[-1]["ms"] != whole[-1]["ms"]
    assert said == "16^3 opencl, 1 of 1: blocked 16x16\n"
