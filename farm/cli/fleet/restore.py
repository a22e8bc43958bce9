"""`farm restore`: put back what a crash left changed on phones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

from farm.access import COMMAND_LINE, existing_settings, has_ledger, open_site, site_of, user_by
from farm.cli import completion
from farm.cli.output import HERE, Common, argument, option, show_done


def restore(
    serials: Annotated[
        list[str] | None,
        argument(
            "SERIAL",
            "Devices to restore; default: all that have something to restore.",
            autocompletion=completion.serials,
        ),
    ] = None,
    everything: Annotated[bool, option("--all", "All devices that have something to restore.")] = False,
    common: Common = HERE,
) -> None:
    """Restore what a crashed session left changed on phones: cut supplies, settings. Needs no running farm.

    A running worker does the same when it reaches a phone. A device with a running session is not touched. Exit status
    1 if something could not be restored, or if a device that you name has nothing to restore.

    Example: `farm restore`, `farm restore R58M123ABC --json`
    """
    from orchestrator import acts

    settings = existing_settings(common.state)
    with open_site(settings) if has_ledger(settings) else nullcontext(site_of(settings, None)) as site:
        done = acts.devices.restore(site, user_by(COMMAND_LINE), () if everything else tuple(serials or ()))
    show_done(done, as_json=common.as_json)
