"""`farm tune`: each layer's fastest algorithm and tile, measured on a device; `split`, `show`, `export`, `import`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from farm.access import existing_settings, settings_of
from farm.cli.output import HERE, Common, argument, group_of, log, option, out, print_json
from kernels.options import Options
from orchestrator.model.device import Api, Precision
from orchestrator.model.quantity import counted, parse_seconds

from .axis_options import with_compiler_options
from .engine import DeviceOption
from .model_options import BatchOption, ModelArgument, NetworkOption, SeedOption, SizeOption, load_graph
from .split import split

if TYPE_CHECKING:
    from kernels.tuning import Progress as Step
    from kernels.tuning import Strategy
    from orchestrator.system.config import Settings
    from workers.tuning.tune_device import Tuned

PLAIN_PERIOD_S = 10.0
"""Shortest period of plain lines where standard error is no terminal."""
NAMES = ("exhaustive", "halving", "budgeted")


@with_compiler_options(only=("threads",), backend=None)
def run(
    *,
    options: Options,
    model: ModelArgument = None,
    network: NetworkOption = None,
    device: DeviceOption = None,
    strategy: Annotated[
        str | None, option("--strategy", "How to search.", metavar="|".join(NAMES), show_default="halving")
    ] = None,
    budget: Annotated[
        str | None,
        option("--budget TIME", "Time for search and comparison, e.g. '5 min'; the next call continues the search."),
    ] = None,
    again: Annotated[bool, option("--again", "Search again, even where choices are known.")] = False,
    seed: SeedOption = 1,
    size: SizeOption = None,
    batch: BatchOption = None,
    common: Common = HERE,
) -> None:
    """Search, then compare the whole network tuned and untuned, and keep what makes it faster.

    The device is busy meanwhile. An interrupted search is resumed by the same command. Choices for the CPU backend hold
    for the given number of threads.

    Example: `farm tune run model.onnx --backend vulkan --strategy budgeted --budget '5 min'`
    """
    began = time.monotonic()  # reading the model counts, too
    from workers.tuning.tune_device import tune_on

    from . import tuning

    graph = load_graph(model, network, seed, size, batch)
    chosen, budget_s = _strategy(strategy, budget)
    with _bar() as bar:
        watch = _Watch(bar)
        result: Tuned = tune_on(
            device=device, graph=graph, options=options,
            settings=settings_of(common.state), strategy=chosen, budget_s=budget_s, began=began, again=again,
            on_progress=watch.searched, on_compare=watch.compared,
        )  # fmt: skip
    if common.as_json:
        print_json(tuning.as_data(result))
    else:
        out().print(tuning.render(result, budget))


def _strategy(name: str | None, budget: str | None) -> tuple[Callable[[float], Strategy], float | None]:
    """Return how a strategy is made from the seconds of a layer, and the budget. Raises UsageError."""
    from kernels.tuning import STRATEGIES

    name = name or ("halving" if budget is None else "budgeted")
    if name not in STRATEGIES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(STRATEGIES)}", param_hint="--strategy")
    if (name == "budgeted") != (budget is not None):
        raise typer.BadParameter("--budget TIME and --strategy budgeted belong together", param_hint="--budget")
    try:
        return STRATEGIES[name], parse_seconds(budget) if budget else None
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="--budget") from e


class _Watch:
    """The progress bar: layer by layer, then pair by pair. Off a terminal it is a line now and then."""

    def __init__(self, bar: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock = bar, clock
        self._task = bar.add_task("looking for the device", total=None)
        self._said_at = clock()

    def searched(self, step: Step) -> None:
        text = step.conv.removeprefix("conv ")
        if step.found is not None:
            gain = f" ({step.found.gain:.2f} x)" if step.found.gain else ""
            text += f": {step.found.choice.words}{gain}"
        elif step.best_ms is not None:
            text += f": {step.measured} measured, best {step.best_ms:.3g} ms"
        self._show(text, step.done, step.total)

    def compared(self, done: int, total: int) -> None:
        self._show("whole network, tuned and untuned", done, total)

    def _show(self, text: str, done: int, total: int) -> None:
        self._bar.update(self._task, description=text, completed=done, total=total)
        now = self._clock()
        if not self._bar.console.is_terminal and now - self._said_at >= PLAIN_PERIOD_S:
            self._said_at = now
            self._bar.console.print(f"{done}/{total} {text}", markup=False)


def _bar() -> Progress:
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=log(), transient=True)


def show(
    device: Annotated[str | None, option("--device, -d TEXT", "Only devices whose name contains this.")] = None,
    backend: Annotated[Api | None, option("--backend, -b", "Compute API.")] = None,
    precision: Annotated[Precision | None, option("--precision, -p", "Arithmetic.")] = None,
    common: Common = HERE,
) -> None:
    """Show the known choices: device, layer, choice, time, gain.

    Example: `farm tune show --backend opencl`
    """
    from . import tuning

    found = [
        each
        for each in _database(existing_settings(common.state))
        if (device or "").lower() in each.device.lower()
        and each.device.startswith(backend.value if backend else "")
        and precision in (None, each.precision)
    ]
    if common.as_json:
        print_json([tuning.row(each) for each in found])
    elif found:
        out().print(tuning.table(found))
    else:
        log().print("nothing was tuned yet: start with `farm tune --network NAME --backend opencl`")


def export(file: Annotated[Path, argument("FILE", "JSON file to write.")], common: Common = HERE) -> None:
    """Export the known choices to a file, for other farms with the same devices.

    Example: `farm tune export tuning.json`
    """
    database = _database(existing_settings(common.state))
    database.save(file)
    if common.as_json:
        print_json({"file": file, "entries": len(database)})
    log().print(f"{counted(len(database), 'entry', 'entries')} written to {file}")


def import_(
    file: Annotated[Path, argument("FILE", "JSON file that `farm tune export` wrote.")], common: Common = HERE
) -> None:
    """Import the choices of a file that are new or newer; import nothing if the file is damaged.

    Example: `farm tune import tuning.json`
    """
    from kernels.tuning import read

    database = _database(settings_of(common.state))
    taken = database.merge(read(file))
    database.save()
    if common.as_json:
        print_json({"file": file, "taken": taken, "entries": len(database)})
    log().print(f"{counted(taken, 'entry', 'entries')} taken from {file}; {len(database)} are known now")


def _database(settings: Settings) -> Any:
    from kernels.tuning import Database
    from workers.engines.pocketfarm.plans.tuned_choices import FILE

    return Database(settings.state / FILE)


group = group_of(
    "tune",
    (run, split, show, export, import_),
    "Find the fastest algorithm and tile of each layer on a device; plans use them from then on.\n\n"
    "`farm tune run` may be written `farm tune`.\n\n"
    "Example: `farm tune --network squeezenet_v1_1 --backend opencl` (`--state DIR`, `--json`)",
    implied=bool,
)
