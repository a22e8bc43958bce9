"""`farm links`: public links, by which anybody reads a report, a comparison, a night, or the story of a job."""

from __future__ import annotations

import time
from typing import Annotated

from rich.markup import escape

from farm.access import settings_of
from farm.cli.output import HERE, Common, argument, day, do, group_of, option, say, show_done, show_every
from farm.doors import experiment_or_job, open_door
from orchestrator.model.rights import Link

from .tokens import ends

DAYS, DAY_S = 30.0, 86_400.0


def create(
    target: Annotated[
        str,
        argument(
            "TARGET",
            "An experiment (its report), `A,B` (two of them or two nights: their comparison), a job (its story), "
            "a night, or `suite:NAME`.",
        ),
    ],
    days: Annotated[float, option("--days N", "Days until it ends; a year at most.", min=0)] = DAYS,
    note: Annotated[str, option("--note TEXT", "Whom it is for.")] = "",
    common: Common = HERE,
) -> None:
    """Make a link that anybody may read by, without an account, and print it. It is shown this once.

    Of `suite:NAME` it shows the newest night, and with `/badge.svg` or `/feed.atom` behind it a badge or a feed.

    Example: `farm links create latest --days 7 --note "for the paper"`
    """
    from farm import endpoints
    from orchestrator import acts

    settings = settings_of(common.state)
    with open_door(common.state) as door:
        meant = ",".join(experiment_or_job(door, each) for each in target.split(","))
        done = door.act(acts.links.create_link, meant, time.time() + days * DAY_S, note)
    link = endpoints.address_of(settings) + done.data["path"]
    show_done(done, as_json=common.as_json, once=link, link=link)
    if meant.startswith("suite:"):
        say(f"a badge for a README: {link}/badge.svg; a feed: {link}/feed.atom")


def revoke(
    link: Annotated[str, argument("ID", "Its id, as `farm links list` says it.")], common: Common = HERE
) -> None:
    """Let a link lead nowhere, at once.

    Example: `farm links revoke 3f9c1a2b`
    """
    do("revoke link", link, common=common)


def list_(common: Common = HERE) -> None:
    """List links: to what, who made each, until when, when it was used last. Their secrets are nowhere.

    Example: `farm links list --json`
    """
    heads = ("id", "to", "project", "made by", "ends", "used", "note")
    show_every("/links", heads, _row, common=common, none="there is no public link")


def _row(each: Link) -> tuple[str, ...]:
    of = (each.id, escape(each.target), escape(each.project), escape(each.who))
    return (*of, ends(each), day(each.used_at) or "never", escape(each.note))


group = group_of(
    "links",
    (list_, create, revoke),
    "Create, list and revoke public links: anybody who has one reads a report, comparison, night, or job's story."
    "\n\nExample: `farm links list` (`--state DIR`, `--json`)",
)
