"""`farm plot`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from farm.access import LATEST, open_ledger, settings_of
from farm.cli.experiments.experiments import ExperimentArgument
from farm.cli.measured import find_measured
from farm.cli.output import HERE, Common, log, option, print_json

from .results import gather


def plot(
    experiment: ExperimentArgument = LATEST,
    output: Annotated[Path, option("--output, -o FILE", "Figure to write: .pdf, .svg or .png.")] = Path("figure.pdf"),
    metric: Annotated[
        str, option("--metric NAME", "latency, p90, energy, memory, setup, throughput, generated tokens ...")
    ] = "latency",
    common: Common = HERE,
) -> None:
    """Draw a figure for a paper: a dot with its whole interval for each device, by backend. Needs no running farm.

    What is seen is the file's caption, in its metadata and in --json.

    Example: `farm plot latest -o fig.pdf`, `farm plot first --metric energy -o energy.svg`
    """
    from orchestrator.report import export
    from orchestrator.report.charts import paper

    settings = settings_of(common.state)
    with open_ledger(settings) as ledger:
        content = gather(settings, ledger, find_measured(ledger, experiment), layers=False)
    drawn = paper.draw(export.as_data(content)["summaries"], metric, content.experiment.name)
    written = paper.save(drawn, output)
    if common.as_json:
        print_json({"experiment": content.experiment_id, "file": written, "metric": metric, "caption": drawn.caption})
    log().print(f"drawn into {written}: {drawn.caption}", markup=False)
