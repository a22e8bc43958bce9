"""`farm tune`: what is known is shown, exported and imported; what makes no sense is refused at once."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from farm.cli.engine import tuning
from farm.cli.engine.tune import _Watch
from kernels.tuning import Database, Found
from workers.tuning.plan_comparison import Change, Comparison

from .conftest import Run


def entry(conv: str, device: str = "opencl | Adreno | 1.0") -> Found:
    return Found(
        device=device, precision="fp32", conv=conv, algorithm="direct", tile="1x1x4", ms=1.5, default="direct",
        default_ms=3.0, tried=9, kept=True, at=1.0,
    )  # fmt: skip


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A state folder with three entries."""
    database = Database(tmp_path / ".farm" / "tuning.json")
    for each in (entry("conv a"), entry("conv b"), entry("conv a", "vulkan | Mali | 2.0")):
        database.add(each)
    database.save()
    return tmp_path


def test_nothing_is_known(farm: Run, tmp_path: Path) -> None:
    (tmp_path / ".farm").mkdir()
    assert farm("tune", "show", "--json")[:2] == (0, "[]\n")
    code, out, err = farm("tune", "show")
    assert (code, out) == (0, "") and "farm tune --network" in err


@pytest.mark.parametrize(
    ("options", "count"),
    [([], 3), (["--backend", "vulkan"], 1), (["--device", "adreno"], 2), (["--precision", "fp16"], 0)],
)
def test_show(farm: Run, known: Path, options: list[str], count: int) -> None:
    code, out, _ = farm("tune", "show", *options, "--json")
    rows = json.loads(out)
    assert code == 0 and len(rows) == count and all(row["gain"] == 2.0 for row in rows)
    text = farm("tune", "show", *options)[1]
    assert text.count("direct 1x1x4") == count and text.count("2.00 x") == count


def test_export_and_import(farm: Run, known: Path) -> None:
    assert farm("tune", "export", "all.json")[0] == 0
    for taken in (3, 0):
        code, out, _ = farm("tune", "import", "all.json", "--state", "other", "--json")
        assert code == 0 and json.loads(out) == {"file": "all.json", "taken": taken, "entries": 3}
    assert list(Database(known / "other" / "tuning.json")) == list(Database(known / ".farm" / "tuning.json"))


def test_a_damaged_file_is_refused_as_a_whole(farm: Run, known: Path) -> None:
    farm("tune", "export", "all.json")
    damaged = known / "all.json"
    damaged.write_text(damaged.read_text().replace('"tried": 9', '"tried": "many"', 1))
    code, out, _ = farm("tune", "import", "all.json", "--state", "other", "--json")
    assert code == 1 and "all.json: entry 0, tried:" in json.loads(out)["error"]["message"]
    assert not (known / "other" / "tuning.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["model.onnx", "--network", "lenet"],
        ["--network", "lenet", "--strategy", "guess"],
        ["--network", "lenet", "--strategy", "budgeted"],
        ["--network", "lenet", "--strategy", "halving", "--budget", "5 min"],
        ["--network", "lenet", "--budget", "5 parsecs"],
    ],
)
def test_wrong_usage(farm: Run, arguments: list[str]) -> None:
    code, out, err = farm("tune", *arguments, "--backend", "opencl", "--json")
    assert code == 2 and json.loads(out)["error"]["cause"] == "usage" and "error:" in err


def test_off_a_terminal_progress_is_a_line_now_and_then() -> None:
    buffer, now = StringIO(), [0.0]
    bar = Progress(console=Console(file=buffer, width=80), auto_refresh=False)
    watch = _Watch(bar, lambda: now[0])
    for done in range(30):
        now[0] += 1.0
        watch.compared(done, 30)
    assert buffer.getvalue().splitlines() == [f"{n}/30 whole network, tuned and untuned" for n in (9, 19, 29)]


@pytest.mark.parametrize(
    ("change", "losers", "told"),
    [((-0.2, -0.3, -0.1), (), ""), ((-0.08, -0.38, 0.11), (), "the whole network does not tell"),
     ((0.0, -0.1, 0.1), ("a",), "1 choice without a gain")],
)  # fmt: skip
def test_a_change_that_is_not_resolved_is_called_so(
    change: tuple[float, float, float], losers: tuple[str, ...], told: str
) -> None:
    found = Comparison(1.0, 0.9, Change(*change), 3, frozenset(losers))
    line = tuning.compared(found)
    assert told in line and ("includes zero" in line) == bool(told)


def test_the_backend_must_be_given(farm: Run) -> None:
    code, out, _ = farm("tune", "--network", "lenet", "--json")
    assert code == 2 and "--backend" in json.loads(out)["error"]["message"]


def test_threads_are_the_cpu_backends(farm: Run) -> None:
    code, out, _ = farm("tune", "--network", "lenet", "--backend", "vulkan", "--threads", "2", "--json")
    assert code == 2 and "--threads means nothing on vulkan without `on_cpu`" in json.loads(out)["error"]["message"]
