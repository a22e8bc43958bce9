"""`farm ledger backup`, `farm ledger restore`: copies of the ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .farm_access import find_ledger, settings_of
from .output import JsonOption, StateOption, log, out, print_json


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes; its folder must be there.")],
    force: Annotated[bool, typer.Option("--force", help="Replace FILE where it is there already.")] = False,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the ledger into a file, for this user's eyes; the farm may run meanwhile.

    The copy is of one moment. It is written beside FILE, flushed to the disk, opened and checked, and only then gets
    its name. Of PostgreSQL it is a dump by pg_dump.

    Example: `farm ledger backup /backups/ledger-monday.sqlite`
    """
    from orchestrator.upkeep import copies

    settings = settings_of(state)
    find_ledger(settings)
    with log().status("copying"):
        made = copies.backup(settings.ledger, file, force=force)
    if as_json:
        print_json({"file": made.file, "bytes": made.size, **asdict(made.facts)})
        return
    facts = made.facts
    known = (
        "" if facts.jobs is None else f": {facts.experiments} experiments, {facts.jobs} jobs, {facts.records} records"
    )
    out().print(f"{made.file}, {made.size} bytes, is whole{known}", markup=False, soft_wrap=True)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `farm ledger backup`.", exists=True)],
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put the ledger back from a copy, while no farm runs on the state folder. The present ledger is kept beside it.

    What was measured after the copy is measured again. Fencing tokens go on far above all that were handed out, so that
    no record of an older session counts. A copy of an older version is upgraded.

    Example: `farm ledger restore /backups/ledger-2026-11-22.sqlite`
    """
    from farm.endpoints import StateLock
    from orchestrator.upkeep import copies

    settings = settings_of(state)
    lock = StateLock(settings.state)
    try:
        with log().status("putting back"):
            done = copies.restore(settings.ledger, file, settings.state)
    finally:
        lock.release()
    if as_json:
        print_json(asdict(done))
        return
    out().print(f"the ledger is that of {file}; fencing tokens go on from {done.token}", markup=False, soft_wrap=True)
    if done.before is not None:
        out().print(f"the one that was there is kept: {done.before}", markup=False, soft_wrap=True)
    out().print("next: `farm ledger check`, then `farm up`", markup=False, soft_wrap=True)
