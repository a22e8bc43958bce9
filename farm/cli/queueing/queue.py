"""`farm queue`: queueing experiments with phones as servers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.access import open_ledger, settings_of
from farm.cli.measured import find_measured
from farm.cli.output import HERE, Common, argument, group_of, is_yaml, option, out, print_json, say, write_whole
from orchestrator.model.errors import Unsupported

from .tables import runs_table, show_kept

if TYPE_CHECKING:
    from orchestrator.queueing.kept import Read
    from orchestrator.queueing.learnt import Body
    from orchestrator.queueing.measured import TimesUsed
    from orchestrator.queueing.spec import QueueingSpec

SHOWN = 30
MOST_LOAD = 10.0
RunArgument = Annotated[str, argument("RUN", "Id of a run, the name of an experiment (its newest), or `latest`.")]


HtmlOption = Annotated[Path | None, option("--html FILE", "Write an HTML report with figures and charts.")]


def run(
    spec: Annotated[Path, argument("SPEC", "Queueing spec, a YAML file.")],
    simulate: Annotated[bool, option("--simulate", "Run in virtual time, with modelled servers.")] = False,
    rates: Annotated[
        str | None, option("--rates SHARES", "Run a load curve: shares of the capacity, e.g. 0.3,0.5,0.9.")
    ] = None,
    capacity: Annotated[
        bool, option("--capacity", "Search for the largest rate that meets the `target` of the spec.")
    ] = False,
    policies: Annotated[
        str | None, option("--policies NAMES", "Run under each of these policies: fifo,jsq,edf.")
    ] = None,
    html: HtmlOption = None,
    common: Common = HERE,
) -> None:
    """Run a queueing experiment: requests arrive, a policy says which server serves which, and latency is measured.

    Latency counts from the intended arrival. Figures have 95 % intervals, without the warm-up. Needs no running farm.

    Example: `farm queue examples/queueing/rack.yaml --simulate`
    """
    from orchestrator.queueing.spec import load

    from .live import run_live
    from .simulated import simulate as run_simulation
    from .simulated import write_report

    if (rates is not None) + capacity + (policies is not None) > 1:
        raise typer.BadParameter("give one of --rates, --capacity and --policies", param_hint="--rates")
    if capacity and html is not None:
        raise typer.BadParameter("the report has no search for the capacity", param_hint="--html")
    loaded = load(spec)
    used: list[TimesUsed] = []
    bodies: list[Body] = []
    if loaded.asks_the_ledger:
        loaded, used, bodies = _from_ledger(loaded, common.state, learn=simulate)
    loads = _shares(rates) if rates is not None else []
    names = [name.strip() for name in policies.split(",")] if policies is not None else []
    if not simulate:
        if names or html is not None:
            raise Unsupported("--policies and --html are of simulations", remedy="add --simulate")
        run_live(loaded, common.state, common.as_json, loads=loads, capacity=capacity)
    elif html is not None:
        write_report(loaded, html, common.as_json, loads=loads, policies=names)
    else:
        run_simulation(loaded, (used, bodies), common.as_json, loads=loads, policies=names, capacity=capacity)


def list_(
    name: Annotated[str | None, argument("[NAME]", "Only runs of this experiment.")] = None, common: Common = HERE
) -> None:
    """List the queueing experiments that ran on devices, the newest first.

    Example: `farm queue list`
    """
    from orchestrator.queueing.kept import list_runs

    with open_ledger(settings_of(common.state)) as ledger:
        runs = list_runs(ledger, name, None if common.as_json else SHOWN)
    if common.as_json:
        print_json({"runs": runs})
    else:
        out().print(runs_table(runs) if runs else "no queueing experiment ran on devices yet")


def show(
    run_id: RunArgument = "latest",
    html: HtmlOption = None,
    parquet: Annotated[Path | None, option("--parquet FILE", "Write all requests, one per row.")] = None,
    common: Common = HERE,
) -> None:
    """Show a queueing experiment that ran on devices: figures from its requests, servers, warnings.

    Example: `farm queue show latest --json`
    """
    from farm import endpoints
    from orchestrator.queueing.kept import as_parquet, read_run

    settings = settings_of(common.state)
    with open_ledger(settings) as ledger:
        if html is None and parquet is None:
            show_kept(ledger, run_id, common.as_json)
            return
        read = read_run(ledger, run_id)
    files = []
    if html is not None:
        files.append(write_whole(html, _page(read, endpoints.pages_of(settings.state)), "--html"))
    if parquet is not None:
        files.append(write_whole(parquet, as_parquet(read), "--parquet"))
    if common.as_json:
        print_json({"id": read.row.id, "files": files})
    for path in files:
        say(f"written: {path}")


def _page(read: Read, pages: str) -> str:
    from orchestrator.queueing.measures import measure
    from orchestrator.report.queueing import Told, queueing_page

    kept = read.kept
    servers = [
        (each.server, each.device.serial, each.device.model, str(each.device.source), each.ended_by)
        for each in kept.servers
    ]
    told = Told(kept.spec, read.row.source, measure(kept.spec, read.runs), read.runs, servers=servers)
    return queueing_page(told, pages)


def _from_ledger(
    spec: QueueingSpec, state: Path | None, *, learn: bool
) -> tuple[QueueingSpec, list[TimesUsed], list[Body]]:
    """The spec with measured times, and where it is to `learn` with what its servers learn; says whose they are."""
    from orchestrator.queueing.learnt import fill_bodies
    from orchestrator.queueing.measured import fill_times

    bodies: list[Body] = []
    with open_ledger(settings_of(state)) as ledger:
        filled, used = fill_times(spec, ledger, partial(find_measured, ledger))
        if learn:
            filled, bodies = fill_bodies(filled, ledger, partial(find_measured, ledger))
    for each in used:
        of = each.of_class if each.server is None else f"{each.of_class} on {each.server}"
        told = f"{each.samples} {each.what} of {each.cell} on {each.device} ({each.source}), {each.experiment}"
        say(f"service of {of}: {told}")
    for body in bodies:
        say(f"learnt of {body.server}: {body.text}")
    return filled, used, bodies


def _shares(text: str) -> list[float]:
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < each <= MOST_LOAD for each in found):
        raise typer.BadParameter(
            f"{text!r}: expected shares up to {MOST_LOAD:g}, such as 0.3,0.5", param_hint="--rates"
        )
    return found


group = group_of(
    "queue",
    (run, list_, show),
    "Queueing experiments with phones as servers: in virtual time (`farm queue SPEC.yaml --simulate`), or on the "
    "devices of this host (`farm queue SPEC.yaml`), whose runs are kept.\n\nExample: "
    "`farm queue rack.yaml --simulate`, `farm queue list`, `farm queue show latest` (`--state DIR`, `--json`)",
    implied=is_yaml,
)
