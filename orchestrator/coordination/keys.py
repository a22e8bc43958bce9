"""Names of all keys in Redis. Nothing there is the only copy of anything.

| key | type | written by | meaning |
|---|---|---|---|
| farm:lease:SERIAL | hash token,job_id,attempt,holder,expires_at | leases.py (Lua) | exclusive right to a device |
| farm:assignment:SERIAL | string, JSON `Assignment` | leases.py, with the lease | what to do under that lease |
| farm:device:SERIAL | string, JSON `Device`, TTL 15 s | workers/discovery.py | facts and state, announced every 2 s |
| farm:device_host:SERIAL | string, TTL 15 s | inventory.py | the host that may announce this device |
| farm:rival:SERIAL | string, TTL 15 s | inventory.py | a second host that has a device of this serial, and is refused |
| farm:host:HOST | string, JSON `HostAnnouncement`, TTL 15 s | workers/discovery.py | a worker and what it runs |
| farm:live:SERIAL | string, JSON `Progress`, TTL 15 s | workers/execution/run_job.py | which phase, how far |
| farm:records | stream: record (JSON `Record`), host, name | record_stream.py | records on their way to the ledger |
| farm:sent:JOB:ATTEMPT | string, TTL 1 day | record_stream.py | which entry of the stream this record is |
| farm:kept:JOB:ATTEMPT | string, TTL 1 day | record_stream.py | what became of this record: the spool lets go of it |
| farm:leases, :devices, :hosts, :lives | sorted sets of names | leases.py, inventory.py | indices, to avoid scans |
| farm:waiting | string, JSON {job: `WaitReason`}, TTL 15 s | scheduler.py | why jobs wait |
| farm:cancelled | set of job ids | reconcile.py | jobs whose sessions must stop |
| farm:ended | set of tokens | reconcile.py | attempts that hosts say they run, and that are over in the ledger |
"""

from __future__ import annotations

PREFIX = "farm:"
RECORDS = PREFIX + "records"
CANCELLED = PREFIX + "cancelled"
ENDED = PREFIX + "ended"
LEASES = PREFIX + "leases"
DEVICES = PREFIX + "devices"
HOSTS = PREFIX + "hosts"
LIVES = PREFIX + "lives"
WAITING = PREFIX + "waiting"
ANNOUNCE_S = 2.0
"""Period of announcements."""
ANNOUNCE_TTL_S = 15
"""A device or host that was not announced for this long is gone."""


def lease(serial: str) -> str:
    return f"{PREFIX}lease:{serial}"


def assignment(serial: str) -> str:
    return f"{PREFIX}assignment:{serial}"


def device(serial: str) -> str:
    return f"{PREFIX}device:{serial}"


def device_host(serial: str) -> str:
    return f"{PREFIX}device_host:{serial}"


def rival(serial: str) -> str:
    return f"{PREFIX}rival:{serial}"


def host(name: str) -> str:
    return f"{PREFIX}host:{name}"


def live(serial: str) -> str:
    return f"{PREFIX}live:{serial}"


def receipt(name: str) -> str:
    return f"{PREFIX}kept:{name}"


def sent(name: str) -> str:
    return f"{PREFIX}sent:{name}"
