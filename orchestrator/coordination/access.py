"""The rights of a host's user in Redis: what its worker does, with its own keys, and nothing else.

Redis enforces it (access lists with keys that may only be read, since Redis 7.0), in functions too. keys.py says which
keys these are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from redis import Redis
from redis.exceptions import ResponseError

from . import keys
from .client import translated

_READS = "get mget strlen getrange exists type ttl hget hmget hgetall sismember smembers zrange xrange xlen llen lrange"
_WRITES = "set del unlink expire hset hdel incr sadd srem zadd zrem xadd lpush rpush brpop rpop"
_COMMANDS = (
    *("-@all", "+@connection", "-@dangerous", "+multi", "+exec", "+discard", "+watch", "+unwatch", "+time", "+info"),
    *(f"+{command}" for command in f"{_READS} {_WRITES} memory|usage fcall".split()),
)
"""Commands of its worker and Celery. No scripts of its own; nothing that makes a value grow in place, or takes long."""
_CELERY = (
    "+publish &/0.celeryev/*",  # its events
    "+psubscribe +punsubscribe +subscribe +unsubscribe &/0.celery.pidbox",  # remote control: it obeys, and says nothing
    "+sadd +srem ~_kombu.binding.celery.pidbox ~_kombu.binding_permanent.celery.pidbox",
    "+smembers %R~_kombu.binding.reply.celery.pidbox",
    f"+lpush ~{keys.REPLIES}",
)
"""Rights that are one apart from the other: who might publish where he listens could command all workers."""


def user_of(host: str) -> str:
    return f"host-{host}"


def rules(host: str, secret_sha256: str) -> list[str]:
    """Return a host's user as `ACL SETUSER` and a file of users take it. `host`: letters, digits, `_` and `-` alone."""
    queue = keys.queue(host)
    own = [keys.host(host), keys.devices(host), keys.lives(host), keys.records(host)]
    own += [keys.change(host), keys.changes(host), keys.news(host), queue]
    own += [f"_kombu.binding.{queue}", f"_kombu.binding_permanent.{queue}", f"{keys.worker(host)}.celery.pidbox"]
    own += [f"{queue}.{key}" for key in ("unacked", "unacked_index", "unacked_mutex")]  # of workers before 0140
    own += [make(host, "*") for make in (keys.held, keys.assignment, keys.device, keys.live, keys.sent)]
    own += [make(host, "*") for make in (keys.asked, keys.answer)]
    read = [keys.lease("*"), keys.held("*", "*"), keys.receipt(host, "*")]
    read += [keys.CANCELLED, keys.ENDED, keys.FARM, keys.OWNERS]
    patterns = [*(f"~{key}" for key in own), *(f"%R~{key}" for key in read)]
    apart = [f"({rights})" for rights in _CELERY]
    return ["reset", "on", f"#{secret_sha256}", "resetchannels", *patterns, *_COMMANDS, *apart]


@translated
def admit(redis: Redis, host: str, secret_sha256: str) -> None:
    """Let a host in, from now on; kept over restarts where Redis has a file of users."""
    redis.execute_command("ACL", "SETUSER", user_of(host), *rules(host, secret_sha256))
    _save(redis)
    enter(redis, [host])


@translated
def enter(redis: Redis, hosts: Collection[str]) -> None:
    """Put hosts into the indices, which they may not write themselves; after a wipe, too."""
    if hosts:
        redis.zadd(keys.HOSTS, dict.fromkeys(hosts, 0))
        redis.sadd(keys.SENDERS, *hosts)


@translated
def expel(redis: Redis, host: str) -> None:
    """Redis ends the connections of the host's user, too; nothing of it stays."""
    redis.execute_command("ACL", "DELUSER", user_of(host))
    _save(redis)
    redis.srem(keys.SENDERS, host)
    redis.zrem(keys.HOSTS, host)
    if taken := [serial for serial, owner in redis.hgetall(keys.OWNERS).items() if owner == host]:
        redis.hdel(keys.OWNERS, *taken)
    from .sweep import forget_host  # with all models, which `farm up` needs for nothing else

    forget_host(redis, host)


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
