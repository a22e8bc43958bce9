"""`farm queue`: queueing experiments with phones as servers."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator.errors import Unsupported

from .experiments import PANEL
from .farm_access import find_measured, open_ledger, settings_of
from .output import JsonOption, StateOption, log, out, print_json
from .queue_tables import capacity_line, curve, policies_table, runs_table, show_measured

if TYPE_CHECKING:
    from orchestrator.ledger import Ledger
    from orchestrator.queueing.kept import Read
    from orchestrator.queueing.learnt import Body
    from orchestrator.queueing.measured import TimesUsed
    from orchestrator.queueing.spec import QueueingSpec

SHOWN = 30
MOST_LOAD = 10.0


class _Queue(TyperGroup):
    """`farm queue SPEC` is `farm queue run SPEC`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and Path(args[0]).suffix in (".yaml", ".yml"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


group = typer.Typer(
    name="queue",
    cls=_Queue,
    help="Queueing experiments with phones as servers: in virtual time (`farm queue SPEC.yaml --simulate`), or on the "
    "devices of this host (`farm queue SPEC.yaml`), whose runs are kept.\n\nExample: "
    "`farm queue rack.yaml --simulate`, `farm queue list`, `farm queue show latest` (`--state DIR`, `--json`)",
    no_args_is_help=True,
)
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="Id of a run, the name of an experiment (its newest), or `latest`.")
]


HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the report there: figures, charts, over time.")
]


def register(app: typer.Typer) -> None:
    group.command()(run)
    group.command("list")(listed)
    group.command()(show)
    app.add_typer(group, rich_help_panel=PANEL)


def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="Queueing spec, a YAML file.")],
    simulate: Annotated[bool, typer.Option("--simulate", help="In virtual time, with modelled servers.")] = False,
    rates: Annotated[
        str | None,
        typer.Option("--rates", metavar="SHARES", help="Load curve: shares of the capacity, e.g. 0.3,0.5,0.9."),
    ] = None,
    capacity: Annotated[
        bool, typer.Option("--capacity", help="Search the largest rate that keeps to the spec's `target`.")
    ] = False,
    policies: Annotated[
        str | None, typer.Option("--policies", metavar="NAMES", help="Under each of these policies: fifo,jsq,edf.")
    ] = None,
    html: HtmlOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a queueing experiment: requests arrive, a policy says which server serves which, and latency is measured.

    Latency counts from the intended arrival. Figures have 95 % intervals; the warm-up is left out. No farm need run.

    Example: `farm queue examples/queueing/rack.yaml --simulate`
    """
    from orchestrator.queueing.experiment import as_data, run_and_measure
    from orchestrator.queueing.spec import load

    if (rates is not None) + capacity + (policies is not None) > 1:
        raise typer.BadParameter("give one of --rates, --capacity and --policies", param_hint="--rates")
    loaded = load(spec)
    used: list[TimesUsed] = []
    bodies: list[Body] = []
    if loaded.asks_the_ledger:
        loaded, used, bodies = _from_ledger(loaded, state, learn=simulate)
    if not simulate:
        if policies is not None or html is not None:
            raise Unsupported("--policies and --html are of simulations", remedy="add --simulate")
        if rates is not None:
            _live_curve(loaded, _shares(rates), state, as_json)
        elif capacity:
            _live_capacity(loaded, state, as_json)
        else:
            _live(loaded, state, as_json)
        return
    names = [name.strip() for name in policies.split(",")] if policies is not None else []
    loads = _shares(rates) if rates is not None else []
    if html is not None:
        _report(loaded, names, loads, html)
        return
    if names:
        policies_table(loaded, names, as_json)
        return
    if loads:
        from orchestrator.queueing.capacity import load_curve

        curve(loaded, list(load_curve(loaded, loads)), "simulated", as_json)
        return
    if capacity:
        from orchestrator.queueing.capacity import find_capacity

        capacity_line(loaded.name, find_capacity(loaded), "simulated", as_json)
        return
    measured = run_and_measure(loaded)
    if as_json:
        print_json(as_data(loaded, measured, used, bodies))
    else:
        show_measured(loaded, measured)


def _report(spec: QueueingSpec, names: list[str], loads: list[float], path: Path) -> None:
    """Of a simulation, with what was asked beside it."""
    from orchestrator.queueing.capacity import load_curve
    from orchestrator.queueing.experiment import compare_policies, measure_runs, run_simulated
    from orchestrator.report.queueing import Told, queueing_page

    runs = run_simulated(spec)
    found = compare_policies(spec, names) if names else []
    under = [(name, each) for name, (_, each) in zip(names, found, strict=True)]
    told = Told(
        spec, "simulated", measure_runs(spec, runs), runs, list(load_curve(spec, loads)) if loads else [], under
    )
    path.write_text(queueing_page(told))
    log().print(f"report: {path}", markup=False, soft_wrap=True)


def _live(spec: QueueingSpec, state: Path | None, as_json: bool) -> None:
    """On the devices of this host."""
    from farm.serving import check_possible, run_on_devices

    check_possible(spec)
    settings = settings_of(state)
    with open_ledger(settings, new=True) as ledger:
        ran = run_on_devices(spec, settings, ledger, lambda text: log().print(text, markup=False, soft_wrap=True))
        run_id = ran.keep(ledger)
        log().print(f"kept as {run_id}", markup=False)
        _tell(ledger, run_id, as_json)


def _live_curve(spec: QueueingSpec, loads: list[float], state: Path | None, as_json: bool) -> None:
    """On the devices of this host; each load is a run that is kept."""
    from farm.serving import run_at_loads
    from orchestrator.queueing.capacity import Point
    from orchestrator.queueing.measures import measure

    settings, points, sources = settings_of(state), [], set()
    with open_ledger(settings, new=True) as ledger:

        def tell(text: str) -> None:
            log().print(text, markup=False, soft_wrap=True)

        with closing(run_at_loads(spec, loads, settings, ledger, tell)) as turns:
            for load, ran in turns:
                tell(f"kept as {ran.keep(ledger)}")
                found = measure(ran.spec, [each.run for each in ran.runs])
                offered = sum(ran.spec.offered_rates().values())
                points.append(Point(load=load, offered_per_s=offered, figures=found.total, doubts=found.doubts))
                sources |= {str(each.member.facts.source) for each in ran.residents}
    curve(spec, points, ", ".join(sorted(sources)), as_json)


def _live_capacity(spec: QueueingSpec, state: Path | None, as_json: bool) -> None:
    """On the devices of this host; each run of the search is kept."""
    from farm.serving import capacity_on_devices
    from orchestrator.queueing.kept import list_runs

    settings = settings_of(state)
    with open_ledger(settings, new=True) as ledger:
        found, kept = capacity_on_devices(
            spec, settings, ledger, lambda text: log().print(text, markup=False, soft_wrap=True)
        )
        source = next(each["source"] for each in list_runs(ledger, spec.name) if each["id"] == kept[-1])
    log().print(f"{len(kept)} runs are kept, {kept[0]} to {kept[-1]}", markup=False, soft_wrap=True)
    capacity_line(spec.name, found, source, as_json, kept)


def listed(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only runs of this experiment.")] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the queueing experiments that ran on devices, the newest first.

    Example: `farm queue list`
    """
    from orchestrator.queueing.kept import list_runs

    with open_ledger(settings_of(state)) as ledger:
        runs = list_runs(ledger, name, None if as_json else SHOWN)
    if as_json:
        print_json({"runs": runs})
    else:
        out().print(runs_table(runs) if runs else "no queueing experiment ran on devices yet")


def show(
    run_id: RunArgument = "latest",
    html: HtmlOption = None,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write all requests there, a row each.")
    ] = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a queueing experiment that ran on devices: figures measured anew from its requests, servers, doubts.

    Example: `farm queue show latest --json`
    """
    from farm import endpoints
    from orchestrator.queueing.kept import as_parquet, read_run

    settings = settings_of(state)
    with open_ledger(settings) as ledger:
        if html is None and parquet is None:
            _tell(ledger, run_id, as_json)
            return
        read = read_run(ledger, run_id)
    if html is not None:
        html.write_text(_page(read, endpoints.pages_of(settings.state)))
    if parquet is not None:
        parquet.write_bytes(as_parquet(read))
    for path in filter(None, (html, parquet)):
        log().print(f"written: {path}", markup=False, soft_wrap=True)


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


def _tell(ledger: Ledger, run_id: str, as_json: bool) -> None:
    from orchestrator.queueing.kept import data_of, read_run
    from orchestrator.queueing.measures import measure

    read = read_run(ledger, run_id)
    if as_json:
        print_json(data_of(read))
        return
    show_measured(read.kept.spec, measure(read.kept.spec, read.runs), read.row.source)
    for each in read.kept.servers:
        ended = f"; ended: {each.ended_by}" if each.ended_by else ""
        what = f"{each.server}: {each.device.serial} ({each.device.model}, {each.device.source}){ended}"
        log().print(what, markup=False, soft_wrap=True)


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
        told = f"{each.samples} latencies of {each.cell} on {each.device} ({each.source}), {each.experiment}"
        log().print(f"service of {of}: {told}", markup=False, soft_wrap=True)
    for body in bodies:
        log().print(f"learnt of {body.server}: {body.text}", markup=False, soft_wrap=True)
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
