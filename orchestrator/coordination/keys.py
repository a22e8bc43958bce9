"""Names of all keys in Redis. Nothing there is the only copy of anything.

What a host writes has the host's name in it, in front of a device's: a host's user may write its own keys alone
(access.py). Keys without a host are the scheduler's. What is of another type than `KINDS` says, or too large, goes
(sweep.py).

| key | type | written by | meaning |
|---|---|---|---|
| farm:lease:SERIAL | hash token,last,host,ttl_s,reached | leases.py, for the scheduler | its newest tokens, and whose |
| farm:held:HOST:SERIAL | hash token,last,job_id,attempt,holder,expires_at | leases.py | exclusive right to it |
| farm:assignment:HOST:SERIAL | string, JSON `Assignment` | leases.py, with the lease | what to do under that lease |
| farm:device:HOST:SERIAL | string, JSON `Device`, TTL 15 s | workers/discovery/ | its facts and state, every 2 s |
| farm:devices:HOST, :lives:HOST | sorted sets of serials, TTL 15 s | inventory.py | indices of these keys |
| farm:owners | hash SERIAL -> HOST | owners.py, for the scheduler | the host that has a device |
| farm:host:HOST | string, JSON `HostAnnouncement`, TTL 15 s | workers/discovery/ | a worker and what it runs |
| farm:hosts | sorted set of hosts | inventory.py, access.py | index; admitted hosts do not write it themselves |
| farm:live:HOST:SERIAL | string, JSON `Progress`, TTL 15 s | workers/execution/run_job.py | which phase, how far |
| farm:records:HOST | stream: record (JSON `Record`), name | record_stream.py | records on their way to the ledger |
| farm:sent:HOST:JOB:ATTEMPT | string, TTL 1 day | record_stream.py | which entry of the stream this record is |
| farm:kept:HOST:JOB:ATTEMPT | string, TTL 1 day | record_stream.py | what became of it: the spool lets go of it |
| farm:asked:HOST:NAME | string, JSON `Question`, TTL 10 s | tasks/by_hand.py, for who acts | a command for a phone |
| farm:answer:HOST:NAME | string, JSON `Answer`, TTL 30 s | tasks/by_hand.py | what came of it |
| farm:leased | set of HOST:SERIAL | leases.py, for the scheduler | index, to avoid scans |
| farm:change:HOST | number | change_log.py, for both | of the newest change of a lease or device there |
| farm:changes:HOST | sorted set of `l` or `d` and SERIAL | the same | numbers of the last changes |
| farm:news:HOST | stream of one entry | leases.py, record_stream.py, for both | the scheduler turns at once |
| farm:news: | stream of one entry | news.py, for who submits | the same |
| farm:epoch | string | change_log.py, for the scheduler | another one after a wipe |
| farm:restored | string, number | record_stream.py, for the scheduler | which put-back ledger the receipts are of |
| farm:senders | set of hosts | record_stream.py, access.py | index of the streams |
| farm:farm | string | leases.py | a random name of the farm whose tokens these are |
| farm:periodic:WORK | string, Unix time, TTL 1 h | periodic.py | when it may be begun again |
| farm:work | list, Celery's messages | queue.py | tasks of periodic work, sent by beat |
| farm:waiting | string, JSON {job: `WaitReason`}, TTL 15 s | scheduler.py | why jobs wait |
| farm:cancelled | set of job ids and device:SERIAL | reconcile.py | jobs and lines that must stop |
| farm:ended | set of tokens | reconcile.py | attempts that hosts say they run, and that are over in the ledger |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

PREFIX = "farm:"
SENDERS = PREFIX + "senders"
RESTORED = PREFIX + "restored"
CANCELLED = PREFIX + "cancelled"
ENDED = PREFIX + "ended"
FARM = PREFIX + "farm"
LEASED = PREFIX + "leased"
OWNERS = PREFIX + "owners"
HOSTS = PREFIX + "hosts"
WAITING = PREFIX + "waiting"
WORK = PREFIX + "work"
EPOCH = PREFIX + "epoch"
NOBODY = ".nobody"
"""Stands for a host where keys are those of Celery's remote control that every host writes."""
REPLIES = f"{'-'.join('?' * length for length in (8, 4, 4, 4, 12))}.reply.celery.pidbox"
"""Replies of workers, in a list for each who asked."""
REPLY_BYTES = 4 << 20
REPLY_LIFE_S = 60
"""Replies that nobody has fetched for this long go."""
ANNOUNCE_S = 2.0
"""Period of announcements."""
ANNOUNCE_TTL_S = 15
"""A device or host that was not announced for this long is gone."""
HOST_NAME = r"[A-Za-z0-9_-]{1,100}"
MOST_OF_A_HOST = 1000
"""Devices that a host may announce, and names of hosts that an index may have."""
ANNOUNCED_BYTES = 1 << 18
"""The most bytes of one announcement: what is longer is not read."""
STREAM_BYTES = 128 << 20
"""A stream of records that holds so much takes no more: they wait on the host's disk."""
HOST_BYTES = 2 * STREAM_BYTES
"""The most bytes of all keys of one host: what is more is another's."""


class Kind(NamedTuple):
    """A kind of key, by the word behind `farm:`."""

    type: str
    most_bytes: int = HOST_BYTES


KINDS = {
    **dict.fromkeys(("lease", "owners"), Kind("hash")),
    "held": Kind("hash", ANNOUNCED_BYTES),
    **dict.fromkeys(("assignment", "waiting"), Kind("string")),
    **dict.fromkeys(("device", "host", "live"), Kind("string", 2 * ANNOUNCED_BYTES)),
    **dict.fromkeys(("change", "sent", "kept", "epoch", "restored", "farm", "periodic"), Kind("string", 4096)),
    "asked": Kind("string", 1 << 16),
    "answer": Kind("string", 48 << 20),
    "work": Kind("list", 1 << 20),
    **dict.fromkeys(("devices", "lives", "hosts"), Kind("zset", 1 << 20)),
    "changes": Kind("zset", 4 << 20),
    "news": Kind("stream", 1 << 16),
    "records": Kind("stream"),
    **dict.fromkeys(("leased", "senders", "cancelled", "ended"), Kind("set")),
}


def parsed(name: str) -> tuple[str, str] | None:
    """Host and serial of HOST:SERIAL; None of what is no such name."""
    host, colon, serial = name.partition(":")
    return (host, serial) if colon and serial and is_host(host) else None


def is_host(name: str) -> bool:
    return re.fullmatch(HOST_NAME, name) is not None


def hosts_among(names: Collection[str]) -> tuple[list[str], list[str]]:
    """Return an index's names of hosts, as many as a farm may have, and what is to go."""
    kept = sorted(filter(is_host, names))[:MOST_OF_A_HOST]
    return kept, sorted(set(names) - set(kept))


def queue(host: str) -> str:
    """The queue that a host's worker consumes."""
    return f"farm.{host}"


def worker(host: str) -> str:
    """Return the name of a host's worker, as Celery's tools show it."""
    return f"farm@{host}"


def recall(serial: str) -> str:
    """Return the mark, among what is cancelled, that lets this device's session begin no more of its line."""
    return f"device:{serial}"


def _of(kind: str) -> Callable[[str], str]:
    """Return the names of keys of a kind that has one for each host, device or work."""
    return lambda name: f"{PREFIX}{kind}:{name}"


def _on_host(kind: str) -> Callable[[str, str], str]:
    """Return the names of keys of a kind that has one for each device or name of a host."""
    return lambda host, name: f"{PREFIX}{kind}:{host}:{name}"


periodic = _of("periodic")
lease = _of("lease")
devices = _of("devices")
lives = _of("lives")
host = _of("host")
change = _of("change")
changes = _of("changes")
news = _of("news")
records = _of("records")
held = _on_host("held")
assignment = _on_host("assignment")
device = _on_host("device")
live = _on_host("live")
receipt = _on_host("kept")
sent = _on_host("sent")
asked = _on_host("asked")
answer = _on_host("answer")
