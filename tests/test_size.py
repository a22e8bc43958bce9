"""The budget of the tree: lines by house, files by operator (names on a floor: test_architecture.py). A change that
needs more raises a number here, and says beside it what the lines are for; one that needs fewer lowers it."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {".py", ".cc", ".h", ".inc", ".c", ".cl", ".glsl", ".css", ".j2", ".js"}
LINES = {
    "kernels": 49_480,  # 220: depthwise layers of rows; 65: norms of groups in two steps; 60: GGUF in words
    "orchestrator": 58_930,  # 180: names that steer, units that change; 150: ratios that say nothing; 3_100: people
    "workers": 18_955,  # 10: clocks side by side; 35: counted nouns, means of runs; 310: language models of packages
    "device_agent": 19_430,  # 15: means of runs; 80: runs are followed; 335: packed weights; 440: generation
    "virtual_phones": 8_215,  # 5: who replays locks its journal; 50: a screen; 55: phases of power
    "farm": 14_305,  # 5: warnings of libraries; 170: parts are forked; 175: groups, proxies; 935: log in from afar
    "dashboards": 7_095,  # 115: engines, use as answers; 260: pages of people; 315: log-in by a provider; 965: people
    "client": 445,
    "benchmarks": 11_870,  # 110: tokens beside PyTorch; 60: pairs of engines; 210: people; 350: tokens
    "tests": 87_120,  # 50: depthwise layers of rows; 435: oddities of strangers; 310: people beside faults
}


@pytest.fixture(scope="module")
def files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no checkout of git: what belongs to the tree is not known")
    return [path for line in listed.stdout.splitlines() if (ROOT / (path := Path(line))).is_file()]


def test_each_house_keeps_to_its_lines(files: list[Path]) -> None:
    lines = Counter[str]()
    for path in files:
        if path.suffix in SOURCES and path.parts[0] in LINES:
            lines[path.parts[0]] += (ROOT / path).read_text(errors="replace").count("\n")
    assert set(lines) == set(LINES), "a house is missing, or has moved"
    over = {house: (count, LINES[house]) for house, count in lines.items() if count > LINES[house]}
    assert not over, f"more lines than their budget, (now, budget): {over}"


FILES_OF_AN_OPERATOR = 3
"""Files of the import that name an operator of ONNX: its entry's, and those of rewritings that look for it."""


def test_an_operator_is_named_in_few_files(files: list[Path]) -> None:
    """Whoever adds one touches one file; what builds nodes has lower-case words for them."""
    words = {path: set(re.findall(r"\w+", (ROOT / path).read_text())) for path in files if _is_of_the_import(path)}
    names = sorted({schema.name for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain})
    found = {name: [str(path) for path, own in words.items() if name in own] for name in names}
    assert len(words) > 50 and len(names) > 150
    crowded = {name: where for name, where in found.items() if len(where) > FILES_OF_AN_OPERATOR}
    assert not crowded, f"name the entry alone; in prose say what it does, in lower case: {crowded}"


def _is_of_the_import(path: Path) -> bool:
    return path.is_relative_to("kernels/frontend") and path.suffix == ".py"
