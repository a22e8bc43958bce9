"""`farm queue SPEC.yaml --simulate`: in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from farm.cli.output import print_json, say, write_whole

from .tables import capacity_line, curve, policies_table, show_measured

if TYPE_CHECKING:
    from orchestrator.queueing.learnt import Body
    from orchestrator.queueing.measured import TimesUsed
    from orchestrator.queueing.spec import QueueingSpec

SOURCE = "simulated"


def simulate(
    spec: QueueingSpec,
    learnt: tuple[list[TimesUsed], list[Body]],
    as_json: bool,
    *,
    loads: list[float],
    policies: list[str],
    capacity: bool,
) -> None:
    """Simulate the spec once, at each of the loads, under each of the policies, or search its capacity."""
    from orchestrator.queueing.capacity import find_capacity, load_curve
    from orchestrator.queueing.experiment import as_data, run_and_measure

    if policies:
        policies_table(spec, policies, as_json)
    elif loads:
        curve(spec, list(load_curve(spec, loads)), SOURCE, as_json)
    elif capacity:
        capacity_line(spec.name, find_capacity(spec), SOURCE, as_json)
    elif as_json:
        print_json(as_data(spec, run_and_measure(spec), *learnt))
    else:
        show_measured(spec, run_and_measure(spec))


def write_report(spec: QueueingSpec, path: Path, as_json: bool, *, loads: list[float], policies: list[str]) -> None:
    """Write the HTML report of a simulation, with its load curve or its policies."""
    from orchestrator.queueing.capacity import load_curve
    from orchestrator.queueing.experiment import compare_policies, measure_runs, run_simulated
    from orchestrator.report.queueing import Told, queueing_page

    runs = run_simulated(spec)
    found = compare_policies(spec, policies) if policies else []
    under = [(name, each) for name, (_, each) in zip(policies, found, strict=True)]
    told = Told(spec, SOURCE, measure_runs(spec, runs), runs, list(load_curve(spec, loads)) if loads else [], under)
    written = write_whole(path, queueing_page(told), "--html")
    if as_json:
        print_json({"name": spec.name, "source": SOURCE, "files": [written]})
    say(f"report: {written}")
