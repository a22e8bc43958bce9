"""`farm hold`: a person takes devices for themselves."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from farm.cli import completion
from farm.cli.output import HERE, Common, argument, do, option
from orchestrator.model.quantity import parse_moment, parse_seconds


def hold(
    serials: Annotated[list[str], argument("SERIAL...", "Devices to hold.", autocompletion=completion.serials)],
    until: Annotated[str | None, option("--until TIME", "When the hold ends: `17:00`, `2026-12-01 08:00`.")] = None,
    lasting: Annotated[str | None, option("--for TIME", "How long the hold lasts: `3h`, `30 min`.")] = None,
    note: Annotated[str, option("--note TEXT", "Reason, shown to other people.")] = "",
    now: Annotated[
        bool, option("--now", "Stop the blocks that run there; their jobs are tried again and keep their budget.")
    ] = False,
    alone: Annotated[bool, option("--alone", "Keep your own experiments out, too. --now does the same.")] = False,
    common: Common = HERE,
) -> None:
    """Reserve devices for yourself and what you submit, until the hold ends or somebody runs `farm release`.

    Without --now, blocks that run on the devices are finished first. Only --now needs a running farm. A new hold
    replaces your own hold, but not the hold of another person.

    Example: `farm hold R58M123ABC --until 17:00 --note "new battery"`
    """
    end = _end(until, lasting)
    do("hold", serials, end, note, alone=alone, now=now, common=common)


def _end(until: str | None, lasting: str | None) -> float | None:
    """Unix time. Raises UsageError."""
    if until is not None and lasting is not None:
        raise typer.BadParameter("give either --until or --for", param_hint="--until")
    try:
        end = parse_moment(until) if until is not None else None
        end = time.time() + parse_seconds(lasting) if lasting is not None else end
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="--until" if until is not None else "--for") from e
    if end is not None and end <= time.time():
        raise typer.BadParameter("it is over already", param_hint="--until" if until is not None else "--for")
    return end
