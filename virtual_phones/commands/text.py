"""Contents of files: cat, head, tail, wc, grep, sha1sum, sha256sum, echo, printf."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

from virtual_phones.programs.streams import Io, read_all
from virtual_phones.shell.table import Call, CommandError, Session, split_options
from virtual_phones.system.garbage import Garbler

from .table import command

_BLOCK = 1 << 18


async def _content(shell: Session, path: str, io: Io) -> bytes:
    """A file's content, or standard input for `-`; an agent's journal spoilt while the garbage fault holds."""
    if path == "-":
        return await read_all(io.stdin)
    data = shell.tree.read(path, shell.cwd)
    spoilt = shell.phone.garbled and shell.tree.normal(path, shell.cwd) in shell.phone.journals
    return Garbler().spoil(data) if spoilt else data


async def _contents(shell: Session, paths: list[str], io: Io) -> list[bytes]:
    return [await _content(shell, path, io) for path in paths or ["-"]]


async def _send(io: Io, data: bytes) -> None:
    for start in range(0, len(data), _BLOCK):
        await io.out(data[start : start + _BLOCK])


@command("cat")
async def cat(call: Call) -> int:
    status = 0
    paths = split_options(call.arguments)[1]
    if not paths:
        while block := await call.io.stdin.read():
            await call.io.out(block)
    for path in paths:
        try:
            await _send(call.io, await _content(call.shell, path, call.io))
        except OSError as error:
            await call.io.err(f"cat: {error.filename}: {error.strerror}\n".encode())
            status = 1
    return status


@command("head")
async def head(call: Call) -> int:
    options, paths = split_options(_count_option(call.arguments), with_value="nc")
    for data in await _contents(call.shell, paths, call.io):
        if "c" in options:
            await _send(call.io, data[: int(options["c"])])
        else:
            await _send(call.io, b"".join(data.splitlines(keepends=True)[: int(options.get("n", "10"))]))
    return 0


@command("tail")
async def tail(call: Call) -> int:
    options, paths = split_options(_count_option(call.arguments), with_value="nc")
    if "f" in options:
        raise CommandError("-f is not part of a virtual phone; poll with tail -c +OFFSET")
    for data in await _contents(call.shell, paths, call.io):
        count = options.get("c", options.get("n", "10"))
        parts = data if "c" in options else data.splitlines(keepends=True)
        kept = parts[max(0, int(count[1:]) - 1) :] if count.startswith("+") else parts[-int(count.lstrip("-")) :]
        await _send(call.io, kept if isinstance(kept, bytes) else b"".join(kept))
    return 0


def _count_option(arguments: list[str]) -> list[str]:
    """`-5` is `-n 5`."""
    return [f"-n{word[1:]}" if re.fullmatch(r"-\d+", word) else word for word in arguments]


@command("wc")
async def wc(call: Call) -> int:
    options, paths = split_options(call.arguments)
    for path, data in zip(paths or [""], await _contents(call.shell, paths, call.io), strict=True):
        counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
        shown = [str(counts[letter]) for letter in "lwc" if letter in options or not options]
        await call.io.out(" ".join([*shown, path]).rstrip().encode() + b"\n")
    return 0


@command("sha256sum")
async def sha256sum(call: Call) -> int:
    return await _sums(call.shell, call.arguments, call.io, "sha256")


@command("sha1sum")
async def sha1sum(call: Call) -> int:
    return await _sums(call.shell, call.arguments, call.io, "sha1")


async def _sums(shell: Session, arguments: list[str], io: Io, algorithm: str) -> int:
    options, paths = split_options(arguments)
    for path in paths or ["-"]:
        if path == "-":
            digest = hashlib.new(algorithm, await read_all(io.stdin)).hexdigest()
        else:
            digest = await asyncio.to_thread(_digest, shell.tree.readable_file(path, shell.cwd), algorithm)
        await io.out(f"{digest}\n".encode() if "b" in options else f"{digest}  {path}\n".encode())
    return 0


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


@command("grep")
async def grep(call: Call) -> int:
    options, rest = split_options(call.arguments, with_value="e")
    pattern = options["e"] if "e" in options else rest.pop(0)
    text = re.escape(pattern) if "F" in options else pattern
    wanted = re.compile(text.encode(), re.IGNORECASE if "i" in options else 0)
    found, missed = [], False
    for path in rest or ["-"]:
        try:
            data = await _content(call.shell, path, call.io)
        except OSError as error:
            missed = True
            if "s" not in options:
                await call.io.err(f"grep: {error.filename}: {error.strerror}\n".encode())
            continue
        head = f"{path}:".encode() if "H" in options or (len(rest) > 1 and "h" not in options) else b""
        found += [head + line for line in data.splitlines() if bool(wanted.search(line)) != ("v" in options)]
    if "c" in options:
        await call.io.out(f"{len(found)}\n".encode())
    elif "q" not in options:
        await _send(call.io, b"".join(line + b"\n" for line in found))
    return 2 if missed else int(not found)


@command("echo")
async def echo(call: Call) -> int:
    bare = call.arguments[:1] == ["-n"]
    await call.io.out(" ".join(call.arguments[bare:]).encode("utf-8", "surrogateescape") + (b"" if bare else b"\n"))
    return 0


@command("printf")
async def printf(call: Call) -> int:
    if not call.arguments:
        raise CommandError("not enough arguments")
    layout = call.arguments[0]
    if "\\" in layout:
        layout = layout.encode().decode("unicode_escape")
    values = iter(call.arguments[1:])
    text = re.sub(r"%[sd%]", lambda match: "%" if match[0] == "%%" else next(values, ""), layout)
    await call.io.out(text.encode("utf-8", "surrogateescape"))
    return 0
