"""`farm export`: write the raw figures of an experiment, one a row."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Literal

import typer

from farm.access import LATEST
from farm.cli.experiments.experiments import ExperimentArgument
from farm.cli.measured import find_results, tell_pruned
from farm.cli.output import HERE, STANDARD_OUTPUT, Common, log, option, print_json
from farm.doors import open_door
from orchestrator.model.errors import SetupError
from orchestrator.model.quantity import counted

from .bundles import BundleOption, LabOption, ModelsOption, write_bundle

Form = Literal["parquet", "csv", "json"]
What = Literal["samples", "layers", "power", "predictions", "tokens"]


def export(
    experiment: ExperimentArgument = LATEST,
    form: Annotated[
        Form | None, option("--format parquet|csv|json", "Format of the file.", show_default="as FILE ends; parquet")
    ] = None,
    what: Annotated[
        What | None,
        option(
            "--what samples|layers|power|predictions|tokens",
            "What a row is: a sample, a layer's time, a power reading, a prediction or a token of an answer.",
            show_default="samples; layers where only these were measured",
        ),
    ] = None,
    output: Annotated[
        str | None,
        option("--output, -o FILE", "File to write; `-` is standard output.", show_default="EXPERIMENT-WHAT.FORMAT"),
    ] = None,
    bundle: BundleOption = None,
    lab: LabOption = None,
    models: ModelsOption = False,
    common: Common = HERE,
) -> None:
    """Write one row per sample or prediction, with device, source, axes, block, attempt, phase and outcome.

    Attempts that do not count are included; the column `outcome` marks them. `farm import samples` reads the
    CSV of samples and of layers. With `--bundle` it writes all of an experiment that is over, with its report, into one
    file, which `farm import --bundle` reads in another lab; with `--models` the files of its workload too. Needs no
    running farm.

    Example: `farm export latest -o samples.csv`, `farm export latest --bundle first.zip --lab berlin`
    """
    if bundle is not None:
        if form or what or output:
            raise typer.BadParameter("a bundle has all: give no --format, --what and --output", param_hint="--bundle")
        write_bundle(experiment, bundle, lab, common.state, models=models, as_json=common.as_json)
        return
    ending = Path(output or "").suffix.removeprefix(".").lower()
    kind: Form = form if form is not None else "csv" if ending == "csv" else "json" if ending == "json" else "parquet"
    if output == STANDARD_OUTPUT and (common.as_json or (kind == "parquet" and sys.stdout.isatty())):
        raise typer.BadParameter(
            "standard output takes no --json beside, a terminal csv and json alone", param_hint="--output"
        )
    with open_door(common.state) as door:
        experiment_id = find_results(door, experiment)
        tell_pruned(door.pruned(experiment_id))
        if output == STANDARD_OUTPUT:
            door.table(experiment_id, kind, what, sys.stdout.buffer)
            return
        write = partial(door.table, experiment_id, kind, what)
        path, made, count = _into(output, lambda rows: f"{experiment_id}-{rows}.{kind}", write)
    if common.as_json:
        print_json({"experiment": experiment_id, "file": path, "format": kind, "what": made, "rows": count})
    log().print(f"{counted(count, 'row')} of {experiment_id} written to {path}", soft_wrap=True)


def _into(
    output: str | None, name: Callable[[str], str], write: Callable[[IO[bytes]], tuple[str, int]]
) -> tuple[Path, str, int]:
    """Write a file, whole or not at all; its path, what a row is, and how many there are. `name`: the file's, where
    `output` gives none. Raises SetupError where it cannot be written."""
    folder = Path(output or "").parent
    if not folder.is_dir():
        raise SetupError(f"{output}: there is no folder {folder}", remedy=f"mkdir -p {folder}")
    new = folder / f"{Path(output or name('rows')).name}.new"
    path = Path(output or new)
    try:
        with new.open("wb") as file:
            what, count = write(file)
        path = Path(output or name(what))
        new.replace(path)
    except OSError as e:
        raise SetupError(f"{path}: cannot be written: {e.strerror}", remedy="give another file with -o") from e
    finally:
        new.unlink(missing_ok=True)
    return path, what, count
