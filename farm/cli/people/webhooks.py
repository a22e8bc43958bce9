"""`farm webhooks`: addresses that are told what ends."""

from __future__ import annotations

from typing import Annotated

from rich.markup import escape

from farm.cli.output import HERE, Common, argument, day, do, group_of, option, show_every
from orchestrator.model.rights import Webhook


def add(
    url: Annotated[str, argument("URL", "The address, http or https.")],
    project: Annotated[str, option("--project NAME", "Experiments of this project alone, and no nights.")] = "",
    common: Common = HERE,
) -> None:
    """Have an address told what ends from now on, and print the key that signs. It is shown this once.

    Example: `farm webhooks add https://ci.lab/hooks/farm --project vision`
    """
    do("add webhook", url, project, common=common, once="key")


def remove(
    webhook: Annotated[str, argument("ID", "Its id, as `farm webhooks list` says it.")], common: Common = HERE
) -> None:
    """Tell an address no more, also not what waits for it.

    Example: `farm webhooks remove 3f9c1a2b`
    """
    do("remove webhook", webhook, common=common)


def list_(common: Common = HERE) -> None:
    """List webhooks: what each was told last, and what went wrong. Their keys are shown nowhere.

    Example: `farm webhooks list --json`
    """
    heads = ("id", "address", "project", "", "last", "at", "error")
    show_every("/webhooks", heads, _row, common=common, none="no webhook")


def _row(each: Webhook) -> tuple[str, ...]:
    of = (each.id, escape(each.url), escape(each.project or "all"), "ended" if each.ended_at else "told")
    return (*of, escape(each.event), day(each.tried_at), escape(each.error))


group = group_of(
    "webhooks",
    (list_, add, remove),
    "Add, list and remove addresses that are told when experiments and nights end."
    "\n\nExample: `farm webhooks list` (`--state DIR`, `--json`)",
)
