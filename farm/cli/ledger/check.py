"""`farm ledger check`: whether the ledger is whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from farm.access import open_database, settings_of
from farm.cli.output import HERE, Common, log, out, print_json
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    from orchestrator.ledger.upkeep.check import Fault

SHOWN = 20
"""Rows with the same fault that are named one by one."""


def check(common: Common = HERE) -> None:
    """Check the ledger: its file, every row, and the references between rows. Exit status 1 if something is wrong.

    Reads everything, a batch at a time, and changes nothing; the farm may run meanwhile.

    Example: `farm ledger check`, `farm ledger check --json`
    """
    from orchestrator.ledger.upkeep.check import check as run

    rows: Counter[str] = Counter()
    faults: list[Fault] = []
    with open_database(settings_of(common.state)) as database, log().status("reading") as status:
        for looked in run(database):
            rows[looked.at] += looked.rows
            faults += looked.faults
            status.update(f"{looked.at}: {counted(rows[looked.at], 'row')}; {counted(len(faults), 'fault')} so far")
    wrong = [fault for fault in faults if not fault.harmless]
    if common.as_json:
        print_json({"rows": {at: count for at, count in rows.items() if count}, "faults": [asdict(f) for f in faults]})
    else:
        for line in _lines(faults):
            out().print(line, markup=False, soft_wrap=True)
        read, harmless = counted(rows.total(), "row"), len(faults) - len(wrong)
        out().print(f"{read} read: {counted(len(wrong), 'fault')}, {harmless} harmless")
    if wrong:
        raise typer.Exit(1)


def _lines(faults: list[Fault]) -> list[str]:
    """A line a row; of many rows with one fault the first, and how many there are."""
    alike: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.table, fault.what, fault.remedy), []).append(fault)
    lines = []
    for (table, what, remedy), same in alike.items():
        lines += [f"{table} {fault.row}: {what}".replace(" :", ":") for fault in same[:SHOWN]]
        lines += [f"{table}: {len(same) - SHOWN} more of these (all with --json)"] * (len(same) > SHOWN)
        lines.append(f"  remedy: {remedy}")
    return lines
