"""Show the main parts of a device profile; `--json` has all."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape

from farm.cli.output import day
from orchestrator.model.enrolment import Enrolment, NodeFact, SamplerCost
from orchestrator.model.power import GaugeCalibration
from orchestrator.report.listing import Listing

FOLDERS = (
    "/sys/class/power_supply", "/sys/class/kgsl", "/sys/class/misc/mali0", "/sys/class/thermal",
    "/sys/devices/system/cpu", "/sys/bus/iio/devices", "/proc",
)  # fmt: skip
KEY_NODES = (
    "current_now", "voltage_now", "charge_counter", "temp", "status", "input_suspend", "gpuclk", "cur_freq",
    "gpu_busy_percentage", "gpubusy", "utilization", "scaling_cur_freq", "scaling_max_freq", "energy_value", "stat",
)  # fmt: skip
"""The nodes that telemetry reads: shown one by one where they are refused."""


def render(found: Enrolment) -> RenderableType:
    """The profile in two tables and some lines."""
    when = day(found.enrolled_at)
    head = f"[bold]profile[/] of {escape(found.serial)}, version {found.version} of {when}"
    parts: list[RenderableType] = [head, f"[dim]{escape(found.fingerprint)}[/]", _facts(found), _sources(found)]
    return Group(*parts, *([_nodes(found.nodes)] if found.nodes else []))


def _facts(found: Enrolment) -> Listing:
    rows = [("[bold]gauge[/]", _gauge(found.gauge) if found.gauge else f"[yellow]{escape(found.gauge_reason)}[/]")]
    if found.sampler:
        rows.append(("[bold]sampling costs[/]", _sampler(found.sampler)))
    if found.reference_temp_c is not None:
        rows.append(("[bold]at rest[/]", f"{found.reference_temp_c:.1f} C"))
    rows.append(("[bold]supply[/]", found.supply))
    if found.permissions:
        for head, wanted in (("may", True), ("may not", False)):
            names = [name for name, has in found.permissions.items() if has == wanted]
            rows.append((f"[bold]{head}[/]", ", ".join(names) or "-"))
    return Listing(("", ""), rows, header=False)


def _gauge(gauge: GaugeCalibration) -> str:
    unit = {1e-6: "uA", 1e-3: "mA"}.get(gauge.ampere_per_unit, f"{gauge.ampere_per_unit:g} A")
    sign = "negative" if gauge.discharging_sign < 0 else "positive"
    kind = "absolute" if gauge.absolute else "relative only"
    return (
        f"{unit}, {sign} while it discharges, news every {gauge.refresh_ns / 1e6:.0f} ms, noise "
        f"{gauge.noise_a * 1e3:.1f} mA, gain within {gauge.gain_uncertainty:.1%} ({kind}; {escape(gauge.method)})"
    )


def _sampler(cost: SamplerCost) -> str:
    share = cost.latency_share
    if cost.accepted:
        verdict = "[green]accepted[/]"
    elif share.low <= 0.01:
        verdict = "[yellow]not resolved: the device is too uneven now[/]"
    else:
        verdict = "[yellow]more than 1 %: raise measure.power_period[/]"
    return (
        f"{share.value:+.2%} of the median latency [{share.low:+.2%}, {share.high:+.2%}] and {cost.cpu_share:.2%} of a "
        f"core, every {cost.period_ns / 1e6:.0f} ms: {verdict}"
    )


def _sources(found: Enrolment) -> Listing:
    rows = []
    for fact in found.sources:
        verdict = f"[green]yes:[/] {escape(fact.name)}" if fact.usable else f"[dim]no: {escape(fact.reason)}[/]"
        rows.append((fact.source, fact.scope, verdict))
    return Listing(("power source", "scope", "usable"), rows)


def _nodes(nodes: tuple[NodeFact, ...]) -> Listing:
    """Nodes by folder: how many can be read; what telemetry needs and cannot read by name."""
    rows = []
    for folder in FOLDERS:
        own = [node for node in nodes if node.path.startswith(folder + "/")]
        refused = [node for node in own if node.error]
        keys = [f"{_name(node)} ({node.error})" for node in refused if _name(node) in KEY_NODES]
        rest = len(refused) - len(keys)
        names = keys + ([f"{rest} more"] if rest else [])
        if own:
            rows.append((folder, f"{len(own) - len(refused)} of {len(own)}", escape(", ".join(names))))
    return Listing(("nodes", "readable", "refused"), rows)


def _name(node: NodeFact) -> str:
    return node.path.rpartition("/")[2]
