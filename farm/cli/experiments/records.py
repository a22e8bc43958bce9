"""`farm records`: records that the ledger could not store."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.access import open_ledger, settings_of
from farm.cli.output import HERE, Common, argument, day, group_of, out, print_json, show_list

if TYPE_CHECKING:
    from orchestrator.ledger import DeadRecord


def list_(context: typer.Context, common: Common = HERE) -> None:
    if context.invoked_subcommand is not None:
        return
    from orchestrator.report.listing import Head

    with open_ledger(settings_of(common.state)) as ledger:
        found = ledger.dead.every()
    heads = ("id", "job:attempt", "host", "set aside", Head("bytes", True), "why")
    show_list(found, heads, _row, as_json=common.as_json, none="no record is set aside")


def _row(each: DeadRecord) -> tuple[str, ...]:
    of = (each.id, escape(each.name), escape(each.host), day(each.set_aside_at))
    return (*of, str(each.size), escape(each.reason.partition("\n")[0]))


def show(dead_id: Annotated[str, argument("ID", "Its id, as `farm records` lists it.")], common: Common = HERE) -> None:
    """Write the unchanged bytes of a dead record to standard output; with `--json`, facts about it.

    Example: `farm records show 1f2e3d4c5b6a7980 > record.json`
    """
    with open_ledger(settings_of(common.state)) as ledger:
        body = ledger.dead.body(dead_id)
        (known,) = (each for each in ledger.dead.every() if each.id == dead_id)
    if common.as_json:
        print_json({**asdict(known), "body": body.decode(errors="replace")})
        return
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def replay(
    dead_ids: Annotated[
        list[str] | None, argument("ID", "Ids of dead records; default: all.", show_default=False)
    ] = None,
    common: Common = HERE,
) -> None:
    """Try again to store dead records, for example after an update. Exit status 1 if one cannot be stored.

    A record that is stored now is no longer listed, and its job gets the outcome of the record.

    Example: `farm records replay`
    """
    from orchestrator.model.errors import Unstorable

    words: dict[str, str] = {}
    with open_ledger(settings_of(common.state)) as ledger:
        for dead_id in dead_ids or [each.id for each in ledger.dead.every()]:
            try:
                words[dead_id] = str(ledger.dead.replay(dead_id))
            except Unstorable as e:
                words[dead_id] = f"dead: {str(e).partition(chr(10))[0]}"
    left = [dead_id for dead_id, word in words.items() if word not in ("new", "duplicate")]
    if common.as_json:
        print_json({"replayed": words, "left": left})
    else:
        for dead_id, word in words.items():
            out().print(f"{dead_id} {word}", markup=False, soft_wrap=True)
    if left:
        raise typer.Exit(1)


def drop(
    dead_ids: Annotated[list[str], argument("ID", "Ids of dead records, as `farm records` lists them.")],
    common: Common = HERE,
) -> None:
    """Delete dead records for good: all that you name, or none.

    Example: `farm records drop 1f2e3d4c5b6a7980`
    """
    with open_ledger(settings_of(common.state)) as ledger:
        ledger.dead.drop(dead_ids)
    if common.as_json:
        print_json({"dropped": dead_ids})
        return
    out().print(f"dropped {len(dead_ids)}")


group = group_of(
    "records",
    (show, replay, drop),
    "List dead records: records that the ledger could not store. Each is kept unchanged until it is replayed or "
    "dropped. Needs no running farm.\n\n"
    "Example: `farm records`, `farm records show ID`, `farm records replay` (`--state DIR`, `--json`)",
    bare=list_,
)
