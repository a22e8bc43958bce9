"""`farm export`: write the raw figures of an experiment, one a row."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Literal

import typer

from farm.access import LATEST, labels_of, open_ledger, settings_of
from farm.cli.experiments.experiments import ExperimentArgument
from farm.cli.measured import find_measured, tell_pruned
from farm.cli.output import EXPERIMENTS, STANDARD_OUTPUT, JsonOption, StateOption, log, print_json
from orchestrator.model.errors import SetupError

Form = Literal["parquet", "csv", "json"]
What = Literal["samples", "layers", "power", "predictions", "tokens"]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=EXPERIMENTS)(export)


def export(
    experiment: ExperimentArgument = LATEST,
    form: Annotated[
        Form | None,
        typer.Option(
            "--format",
            metavar="parquet|csv|json",
            help="Format of the file.",
            show_default="as FILE ends; parquet",
        ),
    ] = None,
    what: Annotated[
        What | None,
        typer.Option(
            "--what",
            metavar="samples|layers|power|predictions|tokens",
            help="What a row is: a sample, a layer's time, a power reading, a prediction or a token of an answer.",
            show_default="samples; layers where only these were measured",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write; `-` is standard output.",
            show_default="EXPERIMENT-WHAT.FORMAT",
        ),
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write one row per sample or prediction, with device, source, axes, block, attempt, phase and outcome.

    Attempts that do not count are included; the column `outcome` marks them. `farm import samples` reads the
    CSV of samples and of layers. Needs no running farm.

    Example: `farm export latest -o samples.csv`
    """
    from orchestrator.exchange import export as files

    ending = Path(output or "").suffix.removeprefix(".").lower()
    kind: Form = form if form is not None else "csv" if ending == "csv" else "json" if ending == "json" else "parquet"
    if output == STANDARD_OUTPUT and (as_json or (kind == "parquet" and sys.stdout.isatty())):
        raise typer.BadParameter(
            "standard output takes no --json beside, a terminal csv and json alone", param_hint="--output"
        )
    settings = settings_of(state)
    with open_ledger(settings) as ledger:
        row = find_measured(ledger, experiment)
        experiment_id = row.id
        tell_pruned(ledger, experiment_id)
        what = what or files.measured(ledger, experiment_id)
        labels = labels_of(settings, row.experiment) if what == "predictions" else None
        write = partial(files.export, ledger, experiment_id, kind, what, labels=labels)
        if output == STANDARD_OUTPUT:
            write(sys.stdout.buffer)
            return
        path = Path(output or f"{experiment_id}-{what}.{kind}")
        count = _into(path, write)
    if as_json:
        print_json({"experiment": experiment_id, "file": path, "format": kind, "what": what, "rows": count})
    log().print(f"{count} rows of {experiment_id} written to {path}", soft_wrap=True)


def _into(path: Path, write: Callable[[IO[bytes]], int]) -> int:
    """Write a file, whole or not at all. Raises SetupError where it cannot be written."""
    if not path.parent.is_dir():
        raise SetupError(f"{path}: there is no folder {path.parent}", remedy=f"mkdir -p {path.parent}")
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            count = write(file)
        new.replace(path)
    except OSError as e:
        raise SetupError(f"{path}: cannot be written: {e.strerror}", remedy="give another file with -o") from e
    finally:
        new.unlink(missing_ok=True)
    return count
