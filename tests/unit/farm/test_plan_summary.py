"""The words of `farm plan` about a plan."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from farm.cli.engine.plan_summary import render
from kernels.compile import compile_graph
from kernels.options import Limits, Options
from tests.unit.kernels.back.test_split_weights import LARGEST, SMALL, classifier


def summary(limits: Limits) -> str:
    console = Console(file=StringIO(), record=True, width=200)
    console.print(render(compile_graph(classifier(), Options("opencl", algorithm="direct"), limits).plan))
    return console.export_text()


def test_layers_in_parts_are_named_with_the_reason() -> None:
    rows = [line.split(maxsplit=1)[1].strip() for line in summary(SMALL).splitlines() if line.startswith("divided")]
    assert [row.split()[0] for row in rows] == ["conv0", "conv2", "dense5"]
    size = 4 * 432 * 150
    assert rows[2] == (
        f"dense5 into 10 parts by output features: its {size} bytes of weights exceed the largest buffer of {LARGEST}"
    )
    assert "divided" not in summary(Limits(cpu_device=True))
