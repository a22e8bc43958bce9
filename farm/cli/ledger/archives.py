"""`farm ledger archive`, `adopt`, `prune`: keep old experiments in files, and make room for new ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farm.access import find_experiment, open_database, open_ledger, settings_of
from farm.cli.output import HERE, Common, argument, log, option, out, print_json, say
from orchestrator.model.errors import SetupError
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    from orchestrator.system.config import Settings

Names = Annotated[
    list[str] | None, argument("EXPERIMENT", "Ids or names; without them every one that is over.", show_default=False)
]
DAY_S = 86_400.0
IN_USE = (
    "done; new records use the room. A file shrinks where no farm runs: `farm ledger prune --shrink` after `farm down`"
)


def _seconds(text: str) -> float:
    number = text.strip().removesuffix("d").strip()
    try:
        days = float(number)
    except ValueError:
        days = -1.0
    if not 0 <= days < 1e6:
        raise typer.BadParameter(f"{text!r} is no number of days such as `90d`", param_hint="--older-than")
    return days * DAY_S


OlderThan = Annotated[str, option("--older-than DAYS", "Only experiments that ended at least so long ago, e.g. `90d`.")]


def archive(
    file: Annotated[Path, argument("FILE.parquet", "The file to write.")],
    experiments: Names = None,
    older_than: OlderThan = "0d",
    common: Common = HERE,
) -> None:
    """Write finished experiments into a Parquet file: one row per block, flat columns with units, raw records.

    pandas, DuckDB and pyarrow can read the file, and `farm ledger adopt` reads it back. The ledger stores its hash, so
    that `farm ledger prune` may delete what it holds. The farm may run meanwhile.

    Example: `farm ledger archive 2026.parquet --older-than 90d`
    """
    from orchestrator.ledger.upkeep import archives

    settings, age_s = settings_of(common.state), _seconds(older_than)
    names = _ids(settings, experiments)
    with open_database(settings) as database, log().status("reading") as status:
        with database.read() as connection:
            old = archives.over_since(connection, age_s)
        chosen = [name for name in old if name in names] if age_s and names else names or old
        if not chosen:
            raise SetupError("no experiment is old enough, and over", remedy="`farm status` lists them")
        done = archives.archive(database, file, chosen, lambda rows: status.update(f"{counted(rows, 'row')}"))
    if common.as_json:
        print_json({"file": done.file, "bytes": done.size, "sha256": done.sha256, "experiments": done.experiments,
                    "records": done.records})  # fmt: skip
        return
    of = f"{counted(len(done.experiments), 'experiment')}, {counted(done.records, 'raw record')}"
    what = f"{of}, {done.size} bytes, sha256 {done.sha256}"
    out().print(f"{done.file}: {what}", markup=False, soft_wrap=True)


def adopt(file: Annotated[Path, argument("FILE.parquet", "An archive.", exists=True)], common: Common = HERE) -> None:
    """Read an archive into the ledger: experiments that it lacks, and raw records that were pruned.

    Reading it twice is harmless. Afterwards `farm results`, `farm report` and `farm export` show them as before.

    Example: `farm ledger adopt 2026.parquet`
    """
    from orchestrator.ledger.upkeep import archives

    settings = settings_of(common.state)
    with open_ledger(settings, new=True), open_database(settings) as database, log().status("taking in"):
        done = archives.adopt(database, file)
    if common.as_json:
        print_json({"experiments": done.experiments, "records": done.records})
        return
    taken, records = counted(len(done.experiments), "experiment"), counted(done.records, "raw record")
    out().print(f"{taken} taken in, {records}", soft_wrap=True)


def prune(
    experiments: Names = None,
    older_than: OlderThan = "90d",
    whole: Annotated[bool, option("--whole", "Delete whole experiments whose records are all in an archive.")] = False,
    without_archive: Annotated[
        bool, option("--without-archive", "Also delete what no archive holds; these raw records are then lost.")
    ] = False,
    dead_bytes: Annotated[str, option("--dead-bytes SIZE", "Largest size of `spool/dead/`.")] = "100 MB",
    shrink: Annotated[bool, option("--shrink", "Shrink the file even if nothing is deleted.")] = False,
    dry_run: Annotated[bool, option("--dry-run", "Only print what would be deleted.")] = False,
    yes: Annotated[bool, option("--yes, -y", "Do not ask.")] = False,
    common: Common = HERE,
) -> None:
    """Delete raw records of old experiments that an archive holds. Figures stay, so results print as before.

    It first reads the archives and checks their hashes. It also limits `spool/dead/` of this host by age and bytes. The
    ledger's file shrinks if no farm runs; otherwise new records use the free space.

    Example: `farm ledger prune --older-than 90d --dry-run`
    """
    from farm.endpoints import holder
    from orchestrator.ledger.upkeep import archives
    from orchestrator.model.quantity import parse_bytes
    from workers.spool import old_dead, remove_dead

    settings, age_s = settings_of(common.state), _seconds(older_than)
    try:
        most = parse_bytes(dead_bytes)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint="--dead-bytes") from e
    names = _ids(settings, experiments)
    dead = old_dead(settings.state, age_s, most)
    with open_database(settings) as database, log().status("reading the ledger and its archives") as status:
        found = archives.plan(
            database, experiments=names, older_than_s=age_s, without_archive=without_archive, whole=whole
        )
        told = {
            "experiments": found.experiments, "records": len(found.bodies), "bytes": found.size, "kept": found.kept,
            "whole": found.whole, "archives_unread": found.unread, "dead_files": len(dead),
        }  # fmt: skip
        status.stop()
        _tell(told)
        nothing = not (found.bodies or found.whole or dead or shrink)
        if not (dry_run or nothing):
            _ask(yes)
            status.start()
            for count in archives.prune(database, found):
                status.update(f"{counted(count, 'raw record')} deleted")
            remove_dead(dead)
            farm = holder(settings.state) is not None
            if not farm:
                status.update("giving the room back")
                database.vacuum()
            status.stop()
            log().print(IN_USE if farm else "done; the room is given back", soft_wrap=True)
    if common.as_json:
        print_json({**told, "deleted": not (dry_run or nothing)})


def _ids(settings: Settings, names: list[str] | None) -> list[str]:
    with open_ledger(settings) as ledger:
        return [find_experiment(ledger, name).id for name in names or []]


def _tell(told: dict[str, Any]) -> None:
    lines = [
        f"{counted(len(told['experiments']), 'experiment is', 'experiments are')} old enough",
        f"{told['records']} raw records ({told['bytes']} bytes) would go; their figures stay",
        f"{told['kept']} raw records stay: no archive holds them (`farm ledger archive`)" if told["kept"] else "",
        f"{counted(len(told['whole']), 'experiment')} would go: {', '.join(told['whole'])}" if told["whole"] else "",
        f"{counted(told['dead_files'], 'file')} of spool/dead/ would go" if told["dead_files"] else "",
        *(f"an archive is not there, or not as it was written: {name}" for name in told["archives_unread"]),
    ]
    for line in filter(None, lines):
        say(line)


def _ask(yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise SetupError("nobody is here to confirm it", remedy="`--dry-run` shows it, `--yes` confirms it")
    if not typer.confirm("Delete it?", err=True):
        raise typer.Abort
