"""`farm results`, `farm report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from farm.access import LATEST, labels_of
from farm.cli.experiments.experiments import ExperimentArgument
from farm.cli.explain import hint
from farm.cli.measured import find_results, tell_pruned
from farm.cli.output import HERE, STANDARD_OUTPUT, Common, log, option, out, print_json, say, write_whole
from farm.doors import open_door
from orchestrator.model.errors import ModelFileError

if TYPE_CHECKING:
    from orchestrator.ledger import ExperimentRow, Ledger
    from orchestrator.report.content import Content
    from orchestrator.system.config import Settings


def results(
    experiment: ExperimentArgument = LATEST,
    raw: Annotated[
        bool, option("--raw", "With --json: also every record with all samples, those of lost attempts included.")
    ] = False,
    setup: Annotated[bool, option("--setup", "Show the steps of set-up: cold, warm, cached.")] = False,
    svg: Annotated[Path | None, option("--svg FILE", "Draw the table into this SVG file instead.")] = None,
    common: Common = HERE,
) -> None:
    """Print an experiment's results: medians, intervals, memory, exclusions, warnings. Needs no running farm.

    Example: `farm results`, `farm results first --json --raw > records.json`
    """
    from dashboards.answers import answers
    from orchestrator.report import console, export

    with open_door(common.state) as door:
        experiment_id = find_results(door, experiment)
        if why := door.ask(answers.unlabelled, id=experiment_id):
            say(why)
        content = door.ask(answers.content, id=experiment_id, layers=common.as_json)
        records = door.records(experiment_id) if raw else None
        if raw:
            tell_pruned(door.pruned(experiment_id))
    if svg is not None:
        write_whole(svg, console.as_svg(content, f"farm results {content.experiment.name}"), "--svg")
        log().print(f"drawn into {svg}")
    if common.as_json:
        print_json(export.as_data(content, records))
    elif svg is None:
        out().print(console.render(content, setup=setup))
        hint("warning", "interval", "gross", "net")


def report(
    experiment: ExperimentArgument = LATEST,
    output: Annotated[Path, option("--output, -o FILE", "HTML file to write; `-` is standard output.")] = Path(
        "report.html"
    ),
    common: Common = HERE,
) -> None:
    """Write a self-contained HTML report with plots. Needs no running farm, and the file needs no server.

    Example: `farm report latest -o report.html`
    """
    from dashboards.answers import answers

    with open_door(common.state) as door:
        experiment_id = find_results(door, experiment)
        tell_pruned(door.pruned(experiment_id))
        if why := door.ask(answers.unlabelled, id=experiment_id):
            say(why)
        page, results = door.report(experiment_id)
    if str(output) == STANDARD_OUTPUT:
        sys.stdout.write(page)
        return
    written = write_whole(output, page, "-o")
    if common.as_json:
        print_json({"experiment": experiment_id, "file": written, "results": results})
    log().print(f"report of {experiment_id} written to {written}")


def gather(settings: Settings, ledger: Ledger, row: ExperimentRow, *, layers: bool = True) -> Content:
    """An experiment's report content, with what its set says is right."""
    from orchestrator.report import gathering

    return gathering.gather(ledger, row, _labels(settings, row), layers=layers)


def _labels(settings: Settings, row: ExperimentRow) -> tuple[int, ...] | None:
    """Return the set's labels; where they cannot be read, say so and return None: the rest is told without them."""
    try:
        return labels_of(settings, row.experiment)
    except ModelFileError as e:
        say(f"the shares that are right are left out: {e}")
        return None


def _page(settings: Settings, content: Content, ledger: Ledger) -> str:
    """It leads to the pages of a farm that runs now."""
    from farm import endpoints
    from orchestrator.report.gathering import report_page

    return report_page(content, ledger, endpoints.pages_of(settings.state))


def write_html(content: Content, ledger: Ledger, path: Path) -> Path:
    """Write the HTML report, whole or not at all. Raises SetupError where it cannot be written."""
    from orchestrator.report.gathering import report_page

    return write_whole(path, report_page(content, ledger), "-o")
