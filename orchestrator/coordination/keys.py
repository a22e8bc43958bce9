"""Names of all keys in Redis. Nothing there is the only copy of anything.

What a host writes has the host's name in it, in front of a device's: a host's user may write its own keys alone
(access.py). Keys without a host are the scheduler's, but for the two that settle which host has a device.

| key | type | written by | meaning |
|---|---|---|---|
| farm:lease:SERIAL | hash token,last,host,reached | leases.py, for the scheduler | its newest tokens, and whose it is |
| farm:held:HOST:SERIAL | hash token,last,job_id,attempt,holder,expires_at,ttl_s | leases.py | exclusive right to it |
| farm:assignment:HOST:SERIAL | string, JSON `Assignment` | leases.py, with the lease | what to do under that lease |
| farm:device:HOST:SERIAL | string, JSON `Device`, TTL 15 s | workers/discovery.py | its facts and state, every 2 s |
| farm:device_host:SERIAL | string, TTL 15 s | inventory.py | the host that may announce this device |
| farm:rival:SERIAL | string, TTL 15 s | inventory.py | a second host that has a device of this serial, and is refused |
| farm:host:HOST | string, JSON `HostAnnouncement`, TTL 15 s | workers/discovery.py | a worker and what it runs |
| farm:live:HOST:SERIAL | string, JSON `Progress`, TTL 15 s | workers/execution/run_job.py | which phase, how far |
| farm:records:HOST | stream: record (JSON `Record`), name | record_stream.py | records on their way to the ledger |
| farm:sent:HOST:JOB:ATTEMPT | string, TTL 1 day | record_stream.py | which entry of the stream this record is |
| farm:kept:HOST:JOB:ATTEMPT | string, TTL 1 day | record_stream.py | what became of it: the spool lets go of it |
| farm:leased | set of HOST:SERIAL | leases.py, for the scheduler | index, to avoid scans |
| farm:devices, :hosts, :lives | sorted sets of names | inventory.py | indices; a host may add to them |
| farm:change:HOST | number | change_log.py, for both | of the newest change of a lease or device there |
| farm:changes:HOST | sorted set of `l` or `d` and SERIAL | the same | numbers of the last changes |
| farm:news:HOST | stream of one entry | leases.py, record_stream.py, for both | the scheduler turns at once |
| farm:news: | stream of one entry | news.py, for who submits | the same |
| farm:epoch | string | change_log.py, for the scheduler | another one after a wipe |
| farm:restored | string, number | record_stream.py, for the scheduler | which put-back ledger the receipts are of |
| farm:senders | set of hosts | record_stream.py | index of the streams; a host may add to it |
| farm:farm | string | leases.py | a random name of the farm whose tokens these are |
| farm:waiting | string, JSON {job: `WaitReason`}, TTL 15 s | scheduler.py | why jobs wait |
| farm:cancelled | set of job ids and device:SERIAL | reconcile.py | jobs and lines that must stop |
| farm:ended | set of tokens | reconcile.py | attempts that hosts say they run, and that are over in the ledger |
"""

from __future__ import annotations

PREFIX = "farm:"
SENDERS = PREFIX + "senders"
RESTORED = PREFIX + "restored"
CANCELLED = PREFIX + "cancelled"
ENDED = PREFIX + "ended"
FARM = PREFIX + "farm"
LEASED = PREFIX + "leased"
DEVICES = PREFIX + "devices"
HOSTS = PREFIX + "hosts"
LIVES = PREFIX + "lives"
WAITING = PREFIX + "waiting"
EPOCH = PREFIX + "epoch"
ANNOUNCE_S = 2.0
"""Period of announcements."""
ANNOUNCE_TTL_S = 15
"""A device or host that was not announced for this long is gone."""


def recall(serial: str) -> str:
    """Among what is cancelled: the session on this device begins no further attempt of its line."""
    return f"device:{serial}"


def lease(serial: str) -> str:
    return f"{PREFIX}lease:{serial}"


def held(host: str, serial: str) -> str:
    return f"{PREFIX}held:{host}:{serial}"


def assignment(host: str, serial: str) -> str:
    return f"{PREFIX}assignment:{host}:{serial}"


def device(host: str, serial: str) -> str:
    return f"{PREFIX}device:{host}:{serial}"


def device_host(serial: str) -> str:
    return f"{PREFIX}device_host:{serial}"


def rival(serial: str) -> str:
    return f"{PREFIX}rival:{serial}"


def host(name: str) -> str:
    return f"{PREFIX}host:{name}"


def live(host: str, serial: str) -> str:
    return f"{PREFIX}live:{host}:{serial}"


def change(host: str) -> str:
    return f"{PREFIX}change:{host}"


def changes(host: str) -> str:
    return f"{PREFIX}changes:{host}"


def news(host: str) -> str:
    return f"{PREFIX}news:{host}"


def records(host: str) -> str:
    return f"{PREFIX}records:{host}"


def receipt(host: str, name: str) -> str:
    return f"{PREFIX}kept:{host}:{name}"


def sent(host: str, name: str) -> str:
    return f"{PREFIX}sent:{host}:{name}"
