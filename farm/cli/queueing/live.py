"""`farm queue SPEC.yaml`: on the devices of this host."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.farm_access import open_ledger, settings_of
from farm.cli.output import say

from .tables import capacity_line, curve, show_kept

if TYPE_CHECKING:
    from orchestrator.queueing.spec import QueueingSpec


def run_live(spec: QueueingSpec, state: Path | None, as_json: bool, *, loads: list[float], capacity: bool) -> None:
    """Run the spec once, at each of the loads, or as often as the search for the capacity asks; every run is kept."""
    if loads:
        _curve(spec, loads, state, as_json)
    elif capacity:
        _capacity(spec, state, as_json)
    else:
        _once(spec, state, as_json)


def _once(spec: QueueingSpec, state: Path | None, as_json: bool) -> None:
    from farm.serving import check_possible, run_on_devices

    check_possible(spec)
    settings = settings_of(state)
    with open_ledger(settings, new=True) as ledger:
        ran = run_on_devices(spec, settings, ledger, say)
        run_id = ran.keep(ledger)
        say(f"kept as {run_id}")
        show_kept(ledger, run_id, as_json)


def _curve(spec: QueueingSpec, loads: list[float], state: Path | None, as_json: bool) -> None:
    from farm.serving import run_at_loads
    from orchestrator.queueing.capacity import Point
    from orchestrator.queueing.measures import measure

    settings, points, sources = settings_of(state), [], set()
    with (
        open_ledger(settings, new=True) as ledger,
        closing(run_at_loads(spec, loads, settings, ledger, say)) as turns,
    ):
        for load, ran in turns:
            say(f"kept as {ran.keep(ledger)}")
            found = measure(ran.spec, [each.run for each in ran.runs])
            offered = sum(ran.spec.offered_rates().values())
            points.append(Point(load=load, offered_per_s=offered, figures=found.total, doubts=found.doubts))
            sources |= {str(each.member.facts.source) for each in ran.residents}
    curve(spec, points, ", ".join(sorted(sources)), as_json)


def _capacity(spec: QueueingSpec, state: Path | None, as_json: bool) -> None:
    from farm.serving import capacity_on_devices
    from orchestrator.queueing.kept import list_runs

    settings = settings_of(state)
    with open_ledger(settings, new=True) as ledger:
        found, kept = capacity_on_devices(spec, settings, ledger, say)
        source = next(each["source"] for each in list_runs(ledger, spec.name) if each["id"] == kept[-1])
    say(f"{len(kept)} runs are kept, {kept[0]} to {kept[-1]}")
    capacity_line(spec.name, found, source, as_json, kept)
