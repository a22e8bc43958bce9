"""Acts on the hosts of the farm: add, remove."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from redis import Redis

from orchestrator.answers.hosts import HostView
from orchestrator.config import Settings
from orchestrator.coordination import access
from orchestrator.coordination.leases import Leases
from orchestrator.errors import DeviceBusy, SetupError, UnknownName
from orchestrator.ledger import HostState, Ledger
from orchestrator.model.record import Outcome
from orchestrator.report.wording import counted

from . import endpoints, join
from .reach import Reach, authority_of

CAUSE = "host_removed"


def check_known(name: str, found: Sequence[HostView]) -> None:
    """Raises UnknownName where the farm has never heard of the host."""
    names = [host.name for host in found]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else "farm host list"
        raise UnknownName(f"no host {name!r} on this farm; there are: {', '.join(names) or 'none'}", remedy=hint)


def add(settings: Settings, ledger: Ledger, redis: Redis, name: str, path: Path) -> None:
    """Give a host access of its own to the farm that runs, and write the file with which it joins.

    Raises SetupError where the name is none, the farm does not listen, or the file cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name):
        raise SetupError(f"{name!r} is no name for a host", remedy="use letters, digits, `_` and `-`, 60 at most")
    redis_url, files_url = _urls(settings)
    secret, secret_sha256 = join.new_secret()
    ca = authority_of(settings.state).certificate.read_text()
    join.write(path, join.Join(host=name, redis_url=redis_url, files_url=files_url, secret=secret, ca=ca))
    ledger.standing.admit_host(name, secret_sha256)
    access.admit(redis, name, secret_sha256)


def _urls(settings: Settings) -> tuple[str, str]:
    """Return the URLs of Redis and of the files, as hosts reach them. Raises SetupError."""
    farm = endpoints.read(settings.state)
    if farm and farm.files_url:
        return farm.hosts_redis_url, farm.files_url
    if settings.listen:
        reach = Reach(settings.listen, "", settings.redis_port, settings.web_port, authority_of(settings.state))
        return reach.redis_url, reach.web_url
    raise SetupError(
        "the farm lets no other machine in",
        remedy="start it with `farm up --listen ADDRESS`, on this state folder; with compose, set FARM_LISTEN in .env",
    )


def remove(ledger: Ledger, redis: Redis, name: str, *, force: bool) -> int:
    """Take a host out of the farm; how many attempts were handed back. What is handed back is tried again elsewhere,
    and costs its job nothing.

    Raises DeviceBusy where it still runs something and `force` is not given: nothing is changed then.
    """
    before = next((row.state for row in ledger.standing.hosts() if row.name == name), HostState.ACTIVE)
    ledger.standing.say_of_host(name, HostState.REMOVED)  # first: what is counted now grows no more
    in_hand = [row for row in ledger.running() if row.host == name]
    if in_hand and not force:
        ledger.standing.say_of_host(name, before)
        what = ", ".join(f"{row.label} on {row.serial}" for row in in_hand[:3])
        raise DeviceBusy(
            f"host {name} still runs {counted(len(in_hand), 'session')}: {what}{' ...' * (len(in_hand) > 3)}",
            remedy=f"`farm host drain {name}` and wait, or --force: its jobs are then tried again elsewhere",
        )
    leases = Leases(redis)
    for row in in_hand:
        leases.release(row.serial, row.token)  # its session finds that out before its next step
        ledger.end_attempt(row.job_id, row.attempt, Outcome.LOST, CAUSE)
    ledger.standing.admit_host(name, "")
    access.expel(redis, name)
    return len(in_hand)
