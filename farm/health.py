"""`python -m farm.health scheduler|worker`: exit status 0 where that part has lately done what it is for.

A scheduler says in each turn why jobs wait, a worker announces its host every two seconds; Redis forgets either after
15 s.
A process that is there and stuck, or cut off from Redis or the ledger, is not healthy.
"""

from __future__ import annotations

import sys

from orchestrator.coordination import keys
from orchestrator.coordination.client import connect
from orchestrator.model.errors import FarmError
from orchestrator.system.config import Settings, settings


def silent(part: str, farm: Settings) -> str:
    """Return why a part (`scheduler`, `worker` of this host) is not healthy; empty: it is."""
    key = keys.WAITING if part == "scheduler" else keys.host(farm.host)
    try:
        with connect(farm) as redis:
            return "" if redis.exists(key) else f"the {part} has done nothing for {keys.ANNOUNCE_TTL_S} s"
    except FarmError as e:
        return str(e)


def main(arguments: list[str]) -> int:
    """Entry point."""
    if arguments not in (["scheduler"], ["worker"]):
        print("usage: python -m farm.health scheduler|worker", file=sys.stderr)
        return 2
    why = silent(arguments[0], settings())
    print(why or "ok")
    return 1 if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
