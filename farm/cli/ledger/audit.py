"""`farm audit`: who has done what to the farm."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from farm.cli.output import HERE, Common, option, show_list
from farm.doors import open_door

if TYPE_CHECKING:
    from orchestrator.ledger import AuditRow

SHOWN = 50


def audit(
    most: Annotated[int, option("--last N", "Number of acts.", min=1)] = SHOWN,
    who: Annotated[str, option("--who NAME", "Only acts of this person.")] = "",
    refused: Annotated[bool, option("--refused", "Only what was refused.")] = False,
    common: Common = HERE,
) -> None:
    """List what people have done to the farm, or were refused: when, who, by the command line, a page, a notebook, the
    API or a schedule, from where, what, to what. The newest act is first. Needs no running farm.

    Example: `farm audit --last 10`
    """
    from dashboards.answers import answers

    with open_door(common.state) as door:
        found = door.ask(answers.audit, most=most, who=who, refused=refused or None).items
    heads = ("when", "who", "by", "from", "act", "on", "result")
    show_list(found, heads, _row, as_json=common.as_json, none="nobody has done anything yet")


def _row(each: AuditRow) -> tuple[str, ...]:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.at))
    of = (when, escape(each.who), each.door.value, escape(each.origin))
    return (*of, each.act, escape(each.target), escape(each.said))
