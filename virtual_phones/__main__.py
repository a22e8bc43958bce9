"""`python -m virtual_phones`: start virtual phones."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import itertools
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .adb.key import read_public_key
from .faults import load_script
from .profile import load_model, profile_names
from .server.phones import Options, serve


@contextlib.contextmanager
def _locked(state: Path) -> Iterator[None]:
    """The state folder belongs to one server at a time. Raises ValueError where another one has it."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(f"{state} is in use by another server of virtual phones") from error
        yield


def _parse(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m virtual_phones", description="Start virtual phones.")
    parser.add_argument("--state", type=Path, required=True, help="folder that keeps the phones")
    parser.add_argument("--key", type=Path, required=True, help="adbkey.pub of the only adb server that is let in")
    phones = "profiles or replay:FILE, with commas between them"
    parser.add_argument("--phones", default=",".join(profile_names()), help=phones)
    parser.add_argument("--count", type=int, help="how many phones in all; the profiles take turns")
    parser.add_argument("--owner", default="", help="host whose they are: part of their serials")
    parser.add_argument("--base-port", type=int, default=0, help="first TCP port; 0: any")
    parser.add_argument("--slot", type=Path, help="lock file by which engine runs take turns")
    parser.add_argument("--speed", type=float, default=1.0, help="times faster that heat and charge change")
    parser.add_argument("--faults", type=Path, help="fault script (YAML)")
    parser.add_argument("--with-parent", action="store_true", help="end when the starting process ends")
    given = parser.parse_args(arguments)
    profiles = [load_model(name) for name in given.phones.split(",")]
    count = len(profiles) if given.count is None else given.count
    return Options(
        state=Path(os.path.realpath(given.state)),
        profiles=tuple(itertools.islice(itertools.cycle(profiles), count)),
        key=read_public_key(given.key),
        owner=given.owner,
        base_port=given.base_port,
        slot=given.slot.absolute() if given.slot else None,
        speed=given.speed,
        script=tuple(load_script(given.faults)) if given.faults else (),
        with_parent=given.with_parent,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: prints one JSON line when all phones are up; 2 with a message where they cannot be started."""
    os.umask(0o077)  # phones are this user's alone
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        options = _parse(arguments)
        with _locked(options.state):
            asyncio.run(serve(options))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
