"""Install files on a device by content: what is there already is checked, not sent again."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from orchestrator.model.errors import DeviceSick, SetupError
from workers.connection.base import DeviceConnection, ShellResult
from workers.connection.quote import quote

from .tools import CANNOT_RUN, HASHES, check_ran

_SHA1_LETTERS = 40
MAX_CACHED = 16
"""Entries of one cache folder on the device; one more, and those that this run does not need are removed."""


def install_agent(connection: DeviceConnection, abi: str, agents: Path) -> str:
    """Put the agent for `abi` on the device; returns its path there.

    Raises SetupError where it was not built for that abi, DeviceSick where it does not arrive intact.
    """
    binary = agents / abi / "pocketfarm-agent"
    if not binary.is_file():
        raise SetupError(
            f"there is no agent for abi {abi or '(unknown)'} at {binary}",
            device=connection.serial,
            remedy="build it: `python -m device_agent.build` for this machine and virtual phones, `make agent` for "
            "phones (with ANDROID_NDK set); or set FARM_AGENT_DIR",
        )
    return install_build(connection, binary)


def install_build(connection: DeviceConnection, binary: Path) -> str:
    """Put a build of the agent on the device, beside others; returns its path there. Raises DeviceSick."""
    name = "pocketfarm-agent"
    return f"{put_files(connection, 'agent', file_sha256(binary), {name: binary}, mode=0o755)}/{name}"


def put_files(
    connection: DeviceConnection,
    cache: str,
    identity: str,
    files: Mapping[str, Path],
    *,
    mode: int = 0o644,
    verified: set[str] | None = None,
    beside: Collection[str] = (),
    most: int = MAX_CACHED,
) -> str:
    """Put files into the folder `<cache>/<identity>` on the device, verified there by its hashes; returns the folder.

    `verified`: folders that were verified a moment ago, by who has the device for itself; they are not looked at again.
    `beside`: identities that the same run needs too, and that therefore stay. `most`: entries of the cache that stay.
    """
    folder, verified = place_of(connection, cache, identity), set() if verified is None else verified
    if folder in verified:
        return folder
    targets = {f"{folder}/{name}": path for name, path in files.items()}
    there = _hashes(connection, list(targets))
    lacking = _unlike(targets, there)
    if not lacking:
        verified.add(folder)
        return folder
    verified.clear()  # to make room others may be removed
    _make_room(connection, cache, {place_of(connection, cache, each) for each in (identity, *beside)}, most)
    for parent in sorted({f"{folder}/{name}".rsplit("/", 1)[0] for name in files}):
        run(connection, "mkdir", "-p", parent)
    ending = f".{secrets.token_hex(4)}"
    for target, path in lacking.items():
        connection.push(path, target + ending, mode=mode)
    moves = [quote(["mv", "-f", target + ending, target]) for target in lacking]
    run(connection, "sh", "-c", " && ".join(moves))  # another host may install the same: nobody runs half a file
    found = _hashes(connection, list(targets))
    if bad := next(iter(_unlike(targets, found)), ""):
        raise DeviceSick(
            f"{bad} is not what was sent ({found.get(bad, 'it is not there')})",
            device=connection.serial,
            remedy="check the phone's storage and cable",
        )
    verified.add(folder)
    return folder


def has_file(connection: DeviceConnection, cache: str, sha256: str, name: str, verified: set[str]) -> bool:
    """Return whether the folder `<cache>/<sha256>` on the device has the file of that content; then it is verified."""
    folder = place_of(connection, cache, sha256)
    if folder not in verified and _hashes(connection, [f"{folder}/{name}"]) == {f"{folder}/{name}": sha256}:
        verified.add(folder)
    return folder in verified


def place_of(connection: DeviceConnection, cache: str, identity: str) -> str:
    """The folder on the device of what has this identity."""
    return f"{connection.folder}/{cache}/{identity[:16]}"


def hash_command(paths: Sequence[str]) -> list[str]:
    """Return the command for the hashes of files on the device: SHA-256, or SHA-1 on a system that has no other."""
    best, other = (quote([name, *paths]) for name in HASHES)
    return ["sh", "-c", f"{best}; [ $? -lt {CANNOT_RUN} ] || {other}"]


def run(connection: DeviceConnection, *argv: str, deadline_s: float = 10.0) -> str:
    """Run a command that has to succeed; returns its output. Raises DeviceSick otherwise."""
    return succeeded(connection, argv, connection.shell(argv, deadline_s=deadline_s))


def succeeded(connection: DeviceConnection, argv: Sequence[str], result: ShellResult) -> str:
    """The output of a command that had to succeed. Raises DeviceSick; Unsupported where the phone has no such one."""
    if result.code != 0:
        output = (result.stderr or result.stdout).decode(errors="replace").strip()[-500:]
        check_ran(connection, argv, result)
        full = "storage full: " if "No space left" in output else ""
        raise DeviceSick(
            f"{full}`{' '.join(argv)[:200]}` ended with {result.code}: {output}",
            device=connection.serial,
            remedy=f"look at {connection.folder} on the device",
        )
    return result.stdout.decode(errors="replace")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file of this host, remembered while the file does not change."""
    stat = path.stat()
    return _sha256(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def _sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unlike(targets: Mapping[str, Path], found: Mapping[str, str]) -> dict[str, Path]:
    """Return those of our files that are not so on the device, by their paths there."""
    return {target: path for target, path in targets.items() if not _is_hash_of(found.get(target, ""), path)}


def _is_hash_of(found: str, path: Path) -> bool:
    if len(found) == _SHA1_LETTERS:
        return found == _sha1(path)
    return found == file_sha256(path)


def _sha1(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


def _hashes(connection: DeviceConnection, paths: list[str]) -> dict[str, str]:
    """Path -> hash of those that exist on the device. Raises Unsupported where it has nothing to hash with."""
    result = connection.shell(hash_command(paths), deadline_s=60.0)
    check_ran(connection, HASHES[:1], result)
    pairs = (line.split(maxsplit=1) for line in result.stdout.decode(errors="replace").splitlines())
    return {pair[1]: pair[0] for pair in pairs if len(pair) == 2}


def _make_room(connection: DeviceConnection, cache: str, needed: Collection[str], most: int) -> None:
    listing = connection.shell(["ls", f"{connection.folder}/{cache}"])
    found = listing.stdout.decode(errors="replace").split() if listing.code == 0 else []
    others = sorted({f"{connection.folder}/{cache}/{name}" for name in found} - set(needed))
    if len(found) >= most and others:
        run(connection, "rm", "-rf", *others, deadline_s=60.0)
