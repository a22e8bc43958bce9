"""`farm ledger backup`, `farm ledger restore`: copies of the ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from farm.access import find_ledger, settings_of
from farm.cli.output import HERE, Common, argument, log, option, out, print_json
from orchestrator.model.quantity import counted


def backup(
    file: Annotated[Path, argument("FILE", "File to write; its folder must exist.")],
    force: Annotated[bool, option("--force", "Replace FILE if it exists.")] = False,
    common: Common = HERE,
) -> None:
    """Copy the ledger into a file that only this user can read; the farm may run meanwhile.

    The copy shows one moment in time. It is written to a temporary file, flushed to the disk and checked, and only then
    renamed to FILE. For PostgreSQL it is a dump by pg_dump.

    Example: `farm ledger backup /backups/ledger-monday.sqlite`
    """
    from orchestrator.ledger.upkeep import copies

    settings = settings_of(common.state)
    find_ledger(settings)
    with log().status("copying"):
        made = copies.backup(settings.ledger, file, force=force)
    if common.as_json:
        print_json({"file": made.file, "bytes": made.size, **asdict(made.facts)})
        return
    facts = made.facts
    kinds = ("experiment", "job", "record")
    counts = (facts.experiments, facts.jobs, facts.records)
    known = ", ".join(counted(each, kind) for each, kind in zip(counts, kinds, strict=True) if each is not None)
    out().print(f"{made.file}, {made.size} bytes, is whole{': ' * bool(known)}{known}", markup=False, soft_wrap=True)


def restore(
    file: Annotated[Path, argument("FILE", "A file of `farm ledger backup`.", exists=True)], common: Common = HERE
) -> None:
    """Restore the ledger from a copy, while no farm runs on the state folder. The present ledger is kept beside it.

    Blocks that were measured after the copy are measured again. New fencing tokens are far above all earlier ones, so
    the ledger refuses records of older sessions. A copy of an older version is upgraded.

    Example: `farm ledger restore /backups/ledger-2026-11-22.sqlite`
    """
    from farm.endpoints import StateLock
    from orchestrator.ledger.upkeep import copies

    settings = settings_of(common.state)
    lock = StateLock(settings.state)
    try:
        with log().status("putting back"):
            done = copies.restore(settings.ledger, file, settings.state)
    finally:
        lock.close()
    if common.as_json:
        print_json(asdict(done))
        return
    out().print(f"the ledger is that of {file}; fencing tokens go on from {done.token}", markup=False, soft_wrap=True)
    if done.before is not None:
        out().print(f"the one that was there is kept: {done.before}", markup=False, soft_wrap=True)
    out().print("next: `farm ledger check`, then `farm up`", markup=False, soft_wrap=True)
