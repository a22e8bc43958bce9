"""Confirm and print a submission."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from farm.cli.output import log, say
from orchestrator.model.errors import SpecError
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    from orchestrator.acts import Done

ASK_ABOVE = 10_000
"""Jobs from which `farm run` asks back."""


def confirm_size(experiment: Any, devices: int, *, yes: bool) -> None:
    """Ask back before a very large matrix is built; refuse where nobody can answer."""
    from orchestrator.spec.expansion.expand import size

    count = experiment.devices.count
    runs = size(experiment)
    jobs = runs * {"all": max(1, devices), "any": 1}.get(count, count if isinstance(count, int) else 1)
    if jobs <= ASK_ABOVE or yes:
        return
    extent = f"{counted(jobs, 'job')}: {' x '.join(axes(experiment, devices))}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SpecError(f"this matrix has up to {extent}", remedy="shorten an axis, or confirm it with --yes")
    log().print(f"This matrix has up to [bold]{extent}[/].")
    if not typer.confirm("Submit it?", err=True):
        raise typer.Abort


def axes(experiment: Any, devices: int) -> list[str]:
    """Sizes of the axes, e.g. `backend 3`, blocks and devices included."""
    matrix = {name: values for name, values in experiment.matrix if values is not None and len(values) > 1}
    sizes = [f"{name} {len(values):,}" for name, values in matrix.items()]
    sizes.append(f"blocks {experiment.sampling.blocks:,}")
    if experiment.devices.count != "any":
        sizes.append(f"devices {devices if experiment.devices.count == 'all' else experiment.devices.count}")
    return sizes


def print_submission(submission: Done) -> None:
    """Say on standard error what was submitted and what was excluded."""
    from orchestrator.model.exclusion import Exclusion

    from .exclusions import exclusion_line, exclusion_lines

    console, told = log(), submission.data
    for line in submission.lines:
        say(line)
    for warning in told["warnings"]:
        console.print(f"[yellow]warning:[/] {warning}")
    for line in exclusion_lines([Exclusion(**each) for each in told["exclusions"]], told["devices"]):
        console.print(exclusion_line(line))
