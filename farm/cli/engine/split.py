"""`farm tune split`: the fastest division of a network between GPU and CPU, measured on a device."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from farm.access import settings_of
from farm.cli.output import HERE, Common, log, out, print_json
from kernels.options import Options

from .axis_options import with_compiler_options
from .engine import DeviceOption
from .model_options import BatchOption, ModelArgument, NetworkOption, SeedOption, SizeOption, load_graph

if TYPE_CHECKING:
    from workers.tuning.plan_comparison import Change
    from workers.tuning.split_network import Split

FASTEST = {
    "split": "the split is faster than either alone: `{}`",
    "gpu": "the GPU alone is fastest: leave `on_cpu` out",
    "cpu": "the CPU alone is fastest: `backend: cpu`",
    "": "which is fastest is not told: not all intervals exclude zero",
}


@with_compiler_options(only=(), backend=None)
def split(
    *,
    options: Options,
    model: ModelArgument = None,
    network: NetworkOption = None,
    device: DeviceOption = None,
    seed: SeedOption = 1,
    size: SizeOption = None,
    batch: BatchOption = None,
    common: Common = HERE,
) -> None:
    """Find which layers the CPU should compute beside the GPU, and whether that gains anything on the device.

    Each layer is timed on both sides. The cheapest split is computed and measured, then compared in turn with the
    GPU alone and the CPU alone. The device is busy meanwhile.

    Example: `farm tune split --network squeezenet_v1_1 --backend opencl`
    """
    if options.backend == "cpu":
        raise typer.BadParameter("a network is split between a GPU's backend and the CPU", param_hint="--backend")
    from workers.tuning.split_network import split_on

    graph = load_graph(model, network, seed, size, batch)
    columns = (MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=log(), transient=True) as bar:
        task = bar.add_task("looking for the device", total=None)
        found = split_on(
            device=device, graph=graph, options=options, settings=settings_of(common.state),
            report=lambda what, done, total: bar.update(task, description=escape(what), completed=done, total=total),
        )  # fmt: skip
    if common.as_json:
        print_json(as_data(found))
    else:
        out().print(render(found))


def as_data(found: Split) -> dict[str, Any]:
    """Everything that `--json` prints. `fastest` is null where the intervals do not tell."""
    return {
        "device": found.device.serial,
        "source": found.device.source.value,
        "on_cpu": found.on_cpu,
        "fastest": found.fastest or None,
        "gains": found.gains,
        "split_ms": found.split_ms,
        "gpu_ms": found.gpu_ms,
        "cpu_ms": found.cpu_ms,
        "over_gpu": asdict(found.over_gpu),
        "over_cpu": asdict(found.over_cpu),
        "cpu_over_gpu": asdict(found.cpu_over_gpu),
        "tries": [asdict(each) for each in found.tries],
        "layers": [{"layer": layer, **asdict(times)} for layer, times in found.times.items()],
        "transfer_ms": found.transfer_ms,
        "transfer_ms_per_mb": found.transfer_ms_per_mb,
    }


def render(found: Split) -> RenderableType:
    """The same for people."""
    from orchestrator.report.listing import Head, Listing

    tries = Listing(
        ("on_cpu", Head("calculated ms", True), Head("measured ms", True)),
        [(escape(each.on_cpu), f"{each.expected_ms:.3f}", f"{each.ms:.3f}") for each in found.tries],
    )
    return Group(
        tries,
        "",
        f"[bold]{escape(found.on_cpu)}[/] {found.split_ms:.3f} ms; GPU alone {found.gpu_ms:.3f} ms, split against it "
        f"{_change(found.over_gpu)}; CPU alone {found.cpu_ms:.3f} ms, split against it {_change(found.over_cpu)}",
        FASTEST[found.fastest].format(escape(f"on_cpu: {found.on_cpu}")),
    )


def _change(change: Change) -> str:
    return f"{change.value:+.1%} ({change.low:+.1%} to {change.high:+.1%})"
