"""`benchmarks.engine.zoo`: what it says without PyTorch, and how it counts."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.engine.zoo.__main__ import _summary
from tests.source_tree import ROOT


def test_without_pytorch_it_says_what_to_install() -> None:
    """A module that is None cannot be imported, whether it is installed or not."""
    code = (
        "import runpy, sys; sys.modules['torch'] = None; runpy.run_module('benchmarks.engine.zoo', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "install torch, torchvision, timm and onnxscript" in done.stderr


def test_only_what_is_right_counts_and_what_cannot_be_exported_does_not() -> None:
    rows = [
        {"network": "a", "exporter": "legacy", "backends": {"cpu": "ok 1e-7", "opencl": "WRONG 1e-2"}},
        {"network": "b", "exporter": "legacy", "backends": {"cpu": "refused: no", "opencl": "refused: no"}},
        {"network": "c", "exporter": "legacy", "backends": {}, "exporter_failed": "no"},
    ]
    assert _summary(rows, ["cpu", "opencl"]).splitlines() == [
        "legacy, cpu: 1 of 2 run and are right",
        "legacy, opencl: 0 of 2 run and are right",
    ]
