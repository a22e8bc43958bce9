"""`farm agreement`: compare what the results of a network predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from farm.access import LATEST, labels_of, open_ledger, settings_of
from farm.cli.experiments.experiments import ExperimentArgument
from farm.cli.explain import hint
from farm.cli.measured import find_measured
from farm.cli.output import HERE, Common, log, option, out, print_json
from orchestrator.model.errors import NoData

if TYPE_CHECKING:
    from orchestrator.analysis.agreement import Agreement
    from orchestrator.ledger import ExperimentRow

HOW = "docs/howto/agreement-of-predictions.md"


def agreement(
    experiment: ExperimentArgument = LATEST,
    base: Annotated[
        str,
        option(
            "--base WORDS",
            "Compare with this result, named by words of its configuration and device.",
            show_default="the first in fp32",
        ),
    ] = "",
    changed: Annotated[
        int, option("--changed N", "Number of changed examples to show; --json prints all.", min=0)
    ] = 10,
    common: Common = HERE,
) -> None:
    """Print for how many examples of a set all configurations and devices predict the same class, and how many are
    right.

    For an experiment with a set (`workload.dataset`), finished or not. Needs no running farm.

    Example: `farm agreement latest --base "cpu fp32"`
    """
    from orchestrator.analysis.agreement import agreements

    settings = settings_of(common.state)
    with open_ledger(settings) as ledger:
        row = find_measured(ledger, experiment)
        if row.experiment.workload.dataset is None:
            raise _no_set(row)
        cells = ledger.cells(row.id)
        labels = labels_of(settings, row.experiment)
        found = agreements(ledger.figures(row.id, ["predictions"]), cells, row.experiment, labels, base)
    if common.as_json:
        print_json({"experiment": row.id, "finished": row.finished, "agreements": found})
    else:
        _show(row, found, changed)
        hint("base", "margin", "set")


def _no_set(row: ExperimentRow) -> NoData:
    remedy = f"give one under `workload: {{dataset: ...}}` and run it: {HOW} shows how"
    if row.experiment.workload.language_model is not None:
        remedy = "`farm results` compares the answers of language models"
    return NoData(
        f"{row.id} has no set of examples, so its configurations have predicted nothing that could be compared",
        remedy=remedy,
    )


def _show(row: ExperimentRow, found: tuple[Agreement, ...], most: int) -> None:
    from orchestrator.report import listing
    from orchestrator.report.parts import predictions

    names, changes = predictions.naming(found), predictions.changes(found)
    heading = Text(row.experiment.name, style="bold")
    heading.append(f"  {row.id}", style="not bold dim")
    if names.shared:
        heading.append(f"\nevery configuration: {' '.join(sorted(names.shared))}", style="not bold dim")
    out().print(heading)
    parts = [*predictions.sections(found), predictions.changed(changes, most, names)]
    for part in parts:
        if part.rows:
            out().print(Text(), listing.part(part, most=max(most, listing.SHOWN_ROWS)))
    if not any(one.base for one in found):
        log().print("no block has gone well so far: there are no predictions to compare")
    elif not row.finished:
        log().print("the experiment is not over: this is what is known so far")
