"""`farm best`: which value of an axis is fastest, and whether the data can tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from farm.access import LATEST, open_ledger, settings_of
from farm.cli.experiments.experiments import ExperimentArgument
from farm.cli.explain import hint
from farm.cli.measured import find_measured
from farm.cli.output import HERE, Common, log, option, out, print_json, say
from orchestrator.model.errors import NoData

from .pairs import WhereOption, where_of

if TYPE_CHECKING:
    from orchestrator.analysis.best import Best, Value
    from orchestrator.model.choices import Choices

LAYER = "layer"


def best(
    axis: Annotated[str, option("--axis COLUMN", "Axis to compare: granularity, backend, threads ...")],
    experiment: ExperimentArgument = LATEST,
    per: Annotated[
        str, option("--per COLUMNS", "Columns that form a group, separated by commas: layer, device, network ...")
    ] = "device",
    where: WhereOption = None,
    output: Annotated[
        Path | None,
        option("--output, -o FILE", "Write the best and the worst value of each layer into a choices file."),
    ] = None,
    common: Common = HERE,
) -> None:
    """Print for each group the fastest value of an axis, its ratio to the second, and whether the data resolve it.

    With `layer` in --per it compares times of layers, otherwise of whole inferences. It also works on imports. -o
    writes a choices file for `workload.choices` of an experiment, in which each layer has its own value.

    Example: `farm best latest --per layer,device --axis granularity`
    """
    from orchestrator.analysis.best import choose, measured_layers, measured_runs, to_choices

    columns = [name.strip() for name in per.split(",") if name.strip()]
    with open_ledger(settings_of(common.state)) as ledger:
        row = find_measured(ledger, experiment)
        cells = ledger.cells(row.id)
        if LAYER in columns:
            measured = measured_layers(ledger.figures(row.id, ["per_layer"]), cells)
        else:
            measured = measured_runs(ledger.figures(row.id, []), cells, row.experiment.sampling.mode)
    if not measured:
        raise _nothing(row.id, layers=LAYER in columns)
    found = choose(measured, columns, axis, where_of(where), watched=row.experiment.sampling.is_watched)
    if output is not None:
        _write(output, to_choices(found, f"farm best of {row.id}: {axis} with the least and the greatest time"), found)
    if common.as_json:
        print_json(found)
    else:
        _show(found, columns, axis)
        hint("axis", "interval")


def _write(path: Path, choices: Choices, found: list[Best]) -> None:
    from orchestrator.report.wording import counted

    path.write_text(choices.model_dump_json(indent=1) + "\n")
    say(f"{counted(len(choices.layers), 'layer')} in {path}: name it as `workload.choices`")
    if open_ := sum(one.runner_up is not None and not one.resolved for one in found):
        say(f"of {counted(open_, 'layer')} the data do not tell the best value from others: their choice may be chance")


def _nothing(experiment_id: str, *, layers: bool) -> NoData:
    if layers:
        return NoData(
            f"{experiment_id} has no times of layers",
            remedy="leave `layer` out of --per, or measure them: `measure: {quantities: [latency, layers]}`",
        )
    return NoData(
        f"{experiment_id} has no whole inferences that went well", remedy="times of layers: add `layer` to --per"
    )


def _show(found: list[Best], per: list[str], axis: str) -> None:
    from orchestrator.report import wording
    from orchestrator.report.listing import Head, Listing

    figures = [Head(name, True) for name in ("median ms", "runner-up", "ratio", "95 % interval")]
    rows = [
        (*(_group(one, name) for name in per), f"[bold]{escape(str(one.best))}[/]", *_figures(one)) for one in found
    ]
    if note := wording.unreal_note({source for one in found for source in one.sources}):
        out().print(f"[yellow]{note}[/]")
    out().print(Listing((*per, axis, *figures, "resolved"), rows, header_style="dim"))
    _notes(found, axis)


def _group(one: Best, name: str) -> str:
    """The value of a column; a device with its source in capitals where it is no phone's or workstation's own."""
    from orchestrator.report import wording

    words = {wording.source_word(source) for source in one.sources} if name == "device" else set()
    return escape(" ".join([str(one.group[name]), *sorted(word for word in words if word.isupper())]))


def _figures(one: Best) -> list[str]:
    from orchestrator.report import wording

    ratio, interval = wording.ratio(one.ratio, one.interval, one.unresolved)
    runner_up = "" if one.runner_up is None else escape(str(one.runner_up))
    median, _ = wording.figure(one.median_ms, None, one.values[0].unresolved)
    return [median, runner_up, ratio, interval, _resolved(one)]


def _resolved(one: Best) -> str:
    if one.runner_up is None:
        return "one value"
    if one.resolved:
        return f"[green]yes[/], but not from {_list(one.tied_with)}" if one.tied_with else "[green]yes[/]"
    return f"[yellow]no[/]: {_list(one.tied_with)}"


def _list(values: tuple[Value, ...]) -> str:
    return escape(", ".join(map(str, values)))


def _notes(found: list[Best], axis: str) -> None:
    from orchestrator.report import wording

    for one in found:
        if why := one.values[0].unresolved:
            _, needs = wording.figure(None, None, why)
            named = ", ".join(f"{name} {value}" for name, value in {**one.group, axis: one.best}.items())
            say(f"median not resolved of {named}: {needs}")
    if any(one.tied_with for one in found):
        say("no, not from: the 95 % interval of the ratio to the best holds one, or is not known")
    for reason in dict.fromkeys(one.reason for one in found if one.reason):
        say(f"no: {reason}")
    differ = dict.fromkeys(name for one in found for name in one.also_differ)
    if differ:
        log().print(
            f"Values of {axis} differ in {', '.join(differ)} too: not the axis alone is compared.", markup=False
        )
