"""What a host's user may do in Redis: what its worker does, with its own keys, and nothing else.

Redis enforces it (access lists with selectors, since Redis 7.0), in scripts too. keys.py says which keys these are.
"""

from __future__ import annotations

from collections.abc import Mapping

from redis import Redis
from redis.exceptions import ResponseError

from . import keys
from .client import translated
from .queue import queue_name

_COMMANDS = (
    *("-@all", "+@read", "+@write", "+@connection", "+@transaction", "+eval", "+evalsha", "+script|load", "+time"),
    *("-@dangerous", "-scan", "-randomkey", "-dbsize", "+info"),
)
_SELECTORS = (
    f"(+zadd ~{keys.DEVICES} ~{keys.HOSTS} ~{keys.LIVES})",
    f"(+sadd ~{keys.SENDERS})",
)
"""Indices of all hosts: one may add to them, and take nothing out."""


def user_of(host: str) -> str:
    return f"host-{host}"


def rules(host: str, secret_sha256: str) -> list[str]:
    """Of a host's user, as `ACL SETUSER` and a file of users take them. `host`: letters, digits, `_` and `-` alone."""
    queue = queue_name(host)
    own = [keys.host(host), keys.records(host), keys.change(host), keys.changes(host), keys.news(host), queue]
    own += [f"_kombu.binding.{queue}", f"_kombu.binding_permanent.{queue}"]
    own += [f"{queue}.{key}" for key in ("unacked", "unacked_index", "unacked_mutex")]  # of workers before 0140
    own += [make(host, "*") for make in (keys.held, keys.assignment, keys.device, keys.live, keys.sent)]
    settled = [keys.device_host("*"), keys.rival("*")]
    read = [keys.lease("*"), keys.held("*", "*"), keys.receipt(host, "*"), keys.CANCELLED, keys.ENDED, keys.FARM]
    patterns = [*(f"~{key}" for key in own + settled), *(f"%R~{key}" for key in read)]
    return ["reset", "on", f"#{secret_sha256}", "resetchannels", *patterns, *_COMMANDS, *_SELECTORS]


@translated
def admit(redis: Redis, host: str, secret_sha256: str) -> None:
    """Let a host in, from now on; kept over restarts where Redis has a file of users."""
    redis.execute_command("ACL", "SETUSER", user_of(host), *rules(host, secret_sha256))
    _save(redis)


@translated
def expel(redis: Redis, host: str) -> None:
    """Redis ends the connections of the host's user, too."""
    redis.execute_command("ACL", "DELUSER", user_of(host))
    _save(redis)


def users(password_sha256: str, hosts: Mapping[str, str]) -> str:
    """A file of users: the farm's own, and each host with the SHA-256 of its secret."""
    own = f"user default on #{password_sha256} ~* &* +@all\n"
    each = (f"user {user_of(host)} {' '.join(rules(host, secret))}\n" for host, secret in sorted(hosts.items()))
    return own + "".join(each)


def _save(redis: Redis) -> None:
    try:
        redis.execute_command("ACL", "SAVE")
    except ResponseError:  # it has no file of users: `farm host add` brings a host back after a restart
        return
