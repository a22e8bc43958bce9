"""The farm's functions in Redis: its scripts in Lua, which the farm alone brings there and hosts may call.

Redis keeps them as it keeps its keys, over `FLUSHALL` too. A host may do by them what it may do without (access.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError

from orchestrator.coordination.change_log import NOTE
from orchestrator.coordination.news import TELL
from orchestrator.model.errors import ServiceDown

from . import lease_scripts, scripts

LIBRARY = "pocketfarm"
_READING = ("holds", "entries", "fences")
"""Functions that also a Redis answers that may not be written."""
Call = tuple[Sequence[str], Sequence[Any]]
"""Keys and arguments."""
_BODIES = {
    "acquire": lease_scripts.ACQUIRE,
    "claim": lease_scripts.CLAIM,
    "renew": lease_scripts.RENEW,
    "advance": lease_scripts.ADVANCE,
    "release": lease_scripts.RELEASE,
    "leases": lease_scripts.READ,
    "fences": lease_scripts.FENCES,
    "note": "note(ARGV[1], ARGV[2])",
    "forget": scripts.FORGET,
    "send": scripts.SEND,
    "holds": scripts.HOLDS,
    "entries": scripts.ENTRIES,
    "acknowledge": scripts.ACKNOWLEDGE,
    "sweep": scripts.SWEEP,
    "take": scripts.TAKE,
}
_GROWING = ("send",)
"""Functions that a Redis without memory refuses; the others are small, or make room."""


def call(redis: Redis, name: str, keys: Sequence[str], arguments: Sequence[Any], **options: Any) -> Any:
    """Call one. Raises RedisError, ServiceDown where the farm has not brought its functions yet."""
    return calls(redis, name, [(keys, arguments)], **options)[0]


def calls(redis: Redis, name: str, each: Sequence[Call], **options: Any) -> list[Any]:
    """Call it several times in one trip."""
    commands = [("FCALL", f"farm_{name}", len(keys), *keys, *arguments) for keys, arguments in each]
    try:
        return _answers(redis, commands, options)
    except ResponseError as e:
        if "Function not found" not in str(e):
            raise
    load(redis)
    return _answers(redis, commands, options)


def load(redis: Redis) -> None:
    """Bring them there, in place of another version's. Raises RedisError, ServiceDown for a host."""
    functions = "\n".join(_registered(name, body) for name, body in _BODIES.items())
    library = f"#!lua name={LIBRARY}\n{NOTE}{TELL}{lease_scripts.HELPERS}{scripts.HELPERS}{functions}"
    try:
        redis.execute_command("FUNCTION", "LOAD", "REPLACE", library)
    except NoPermissionError as e:
        raise ServiceDown("Redis has no functions of this farm: its scheduler brings them as soon as it runs") from e


def _registered(name: str, body: str) -> str:
    flags = "{}" if name in _GROWING else "{'no-writes'}" if name in _READING else "{'allow-oom'}"
    callback = f"function(KEYS, ARGV)\n{body}\nend"
    return f"redis.register_function{{function_name='farm_{name}', flags={flags}, callback={callback}}}"


def _answers(redis: Redis, commands: Sequence[tuple[Any, ...]], options: Mapping[str, Any]) -> list[Any]:
    if len(commands) == 1:
        return [redis.execute_command(*commands[0], **options)]
    with redis.pipeline(transaction=False) as pipe:
        for command in commands:
            pipe.execute_command(*command, **options)
        return list(pipe.execute())
