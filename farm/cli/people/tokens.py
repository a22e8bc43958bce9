"""`farm tokens`: what people show to the farm's API."""

from __future__ import annotations

import time
from typing import Annotated

from rich.markup import escape

from farm.cli.output import HERE, Common, argument, day, do, group_of, option, show_list
from farm.doors import open_door
from orchestrator.model.people import Role
from orchestrator.model.rights import Link, Token

DAYS, DAY_S = 90.0, 86_400.0


def create(
    name: Annotated[str, argument("NAME", "Whose token it is.")],
    most: Annotated[Role, option("--most", "The role above which it gives none.")] = Role.ADMINISTER,
    project: Annotated[str, option("--project NAME", "The project in which alone it counts.", show_default="all")] = "",
    days: Annotated[float, option("--days N", "Days until it expires; 0: never.", min=0)] = DAYS,
    note: Annotated[str, option("--note TEXT", "What it is for.")] = "",
    common: Common = HERE,
) -> None:
    """Make a token for a person or program, and print it. It is shown this once: the farm keeps its hash alone.

    Example: `farm tokens create ci --most submit --project vision --days 30`
    """
    until = time.time() + days * DAY_S if days else None
    do("create token", name, most, project, until, note, common=common, once="token")


def revoke(
    token: Annotated[str, argument("ID", "Its id, as `farm tokens list` says it.")], common: Common = HERE
) -> None:
    """Let a token count no more, at once.

    Example: `farm tokens revoke 3f9c1a2b`
    """
    do("revoke token", token, common=common)


def list_(
    name: Annotated[str, argument("[NAME]", "Whose tokens.", show_default="all")] = "", common: Common = HERE
) -> None:
    """List tokens: whose, what each lets them do, until when, when it was used last. Their texts are nowhere.

    Example: `farm tokens list anna`
    """
    from dashboards.answers import answers

    with open_door(common.state) as door:
        found = [each for each in door.every(answers.tokens) if name in ("", each.person)]
    heads = ("id", "who", "at most", "project", "ends", "used", "note")
    show_list(found, heads, _row, as_json=common.as_json, none="there is no token")


def _row(each: Token) -> tuple[str, ...]:
    of = (each.id, escape(each.person), each.most.value, escape(each.project or "all"))
    return (*of, ends(each), day(each.used_at) or "never", escape(each.note))


def ends(token: Token | Link) -> str:
    """Return when a token or link ends or ended, in words."""
    if token.revoked_at:
        return f"revoked {day(token.revoked_at)}"
    return day(token.ends_at) or "never"


group = group_of(
    "tokens",
    (list_, create, revoke),
    "Make, list and revoke the tokens that people and programs show to the farm's API."
    "\n\nExample: `farm tokens list` (`--state DIR`, `--json`)",
)
