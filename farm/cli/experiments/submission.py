"""Confirm and print a submission."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from farm.cli.output import log
from orchestrator.errors import SpecError

if TYPE_CHECKING:
    from orchestrator.model.experiment import Measure
    from orchestrator.submission.submit import Submission

ASK_ABOVE = 10_000
"""Jobs from which `farm run` asks back."""


def confirm_size(experiment: Any, devices: int, *, yes: bool) -> None:
    """Ask back before a very large matrix is built; refuse where nobody can answer."""
    from orchestrator.expansion.expand import size

    count = experiment.devices.count
    runs = size(experiment)
    jobs = runs * {"all": max(1, devices), "any": 1}.get(count, count if isinstance(count, int) else 1)
    if jobs <= ASK_ABOVE or yes:
        return
    extent = f"{jobs:,} jobs: {' x '.join(axes(experiment, devices))}"
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


def print_submission(submission: Submission) -> None:
    """Say on standard error what was submitted and what was excluded."""
    from orchestrator.report.wording import counted

    from .exclusions import exclusion_line, exclusion_lines

    console = log()
    expansion = submission.expansion
    verb = "resumed" if submission.resumed else "submitted"
    devices = {serial for job in expansion.jobs for serial in job.candidates}
    canaries = sum(job.role == "canary" for job in expansion.jobs)
    more = f", {canaries} of them canaries" if canaries else ""
    for job in expansion.reserve[:1]:
        to_precision = job.sampling.target_interval is not None
        more += f"; up to {job.sampling.max_blocks} blocks of a configuration that needs them" if to_precision else ""
        more += "" if to_precision else "; more follow by their results"
    console.print(
        f"{verb} [bold]{submission.experiment_id}[/]: {counted(len(expansion.jobs), 'job')} of "
        f"{counted(_cells(submission), 'configuration')} on {counted(len(devices), 'device')}, "
        f"as they are here now{more}"
    )
    for warning in _warnings(submission):
        console.print(f"[yellow]warning:[/] {warning}")
    for line in exclusion_lines(expansion.exclusions, devices):
        console.print(exclusion_line(line))


def _warnings(submission: Submission) -> list[str]:
    from orchestrator.analysis.stopping_rule import why_out_of_reach

    work = [job for job in submission.expansion.jobs if job.role == "work"]
    found = {why for job in work if (why := why_out_of_reach(job.sampling))}
    return sorted(found | {why for job in work[:1] if (why := _without_power(job.measure))})


def _without_power(measure: Measure) -> str:
    """Return the warning about power options without the quantity `power`; empty where there is no such option."""
    usual = type(measure)()
    given = [name for name in ("power_source", "power_period") if getattr(measure, name) != getattr(usual, name)]
    if not given or "power" in measure.quantities:
        return ""
    return f"`measure.{given[0]}` has no effect: add `power` to `measure.quantities`"


def _cells(submission: Submission) -> int:
    """Cells that run on a device; the others are among the exclusions. The same for a new and a resumed experiment."""
    return len({job.cell.cell_id for job in submission.expansion.jobs if job.role == "work"})


def submission_data(submission: Submission) -> dict[str, Any]:
    """Return the submission as data, for programs."""
    expansion = submission.expansion
    return {
        "experiment": submission.experiment_id,
        "resumed": submission.resumed,
        "jobs": len(expansion.jobs),
        "cells": _cells(submission),
        "exclusions": [vars(each) for each in expansion.exclusions],
        "warnings": _warnings(submission),
    }
