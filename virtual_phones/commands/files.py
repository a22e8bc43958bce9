"""Files: ls, stat, df, mkdir, rm, mv, cp, chmod, ln, touch, find."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import stat as modes
import time
from pathlib import Path

from virtual_phones.shell.table import Call, CommandError, Session, split_options
from virtual_phones.system.replacing import move
from virtual_phones.system.tree import refusal

from .table import command

_FEW = 32


def _existing(shell: Session, path: str) -> Path:
    target = shell.tree.host(path, shell.cwd)
    if not os.path.lexists(target):
        raise refusal(errno.ENOENT, path)
    return target


@command("ls")
async def ls(call: Call) -> int:
    options, paths = split_options(call.arguments)
    status = 0
    for path in paths or ["."]:
        try:
            names = _listing(call.shell, path, options)
        except OSError as error:
            await call.io.err(f"ls: {error.filename}: {error.strerror}\n".encode())
            status = 1
            continue
        head = f"{path}:\n" if len(paths) > 1 and _existing(call.shell, path).is_dir() and "d" not in options else ""
        await call.io.out((head + "".join(f"{name}\n" for name in names)).encode())
    return status


def _listing(shell: Session, path: str, options: dict[str, str]) -> list[str]:
    tree = shell.tree
    normal = tree.normal(path, shell.cwd)
    try:
        tree.check_readable(path, shell.cwd)
        if tree.is_closed(path, shell.cwd):
            return [path]
        target = _existing(shell, path)
    except PermissionError:
        return [path]  # the node is there, only its content is closed
    if not target.is_dir() or "d" in options:
        return [_long(target, path) if "l" in options else path]
    names = sorted({entry.name for entry in target.iterdir()} | tree.denied_names(normal))
    if "a" not in options:
        names = [name for name in names if not name.startswith(".")]
    if "l" not in options:
        return names
    return ["total 0", *(_long(target / name, name) for name in names if os.path.lexists(target / name))]


def _long(target: Path, name: str) -> str:
    facts = target.lstat()
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.st_mtime))
    arrow = f" -> {target.readlink()}" if target.is_symlink() else ""
    return f"{modes.filemode(facts.st_mode)} {facts.st_nlink} shell shell {facts.st_size:>9} {when} {name}{arrow}"


@command("stat")
async def stat(call: Call) -> int:
    options, paths = split_options(call.arguments, with_value="c")
    for path in paths:
        target = _existing(call.shell, path)
        facts = target.stat() if "L" in options else target.lstat()
        layout = options.get("c", "  File: %n\n  Size: %s\t%F\nAccess: (%a/%A)\tUid: (2000/   shell)\nModify: %Y")
        values = {
            "n": path,
            "s": str(facts.st_size),
            "a": f"{facts.st_mode & 0o7777:o}",
            "A": modes.filemode(facts.st_mode),
            "Y": str(int(facts.st_mtime)),
            "i": str(facts.st_ino),
            "F": "directory" if modes.S_ISDIR(facts.st_mode) else "regular file",
            "U": "shell",
            "u": "2000",
        }
        await call.io.out((_formatted(layout, values) + "\n").encode())
    return 0


def _formatted(layout: str, values: dict[str, str]) -> str:
    head, *parts = layout.split("%")
    return head + "".join(values.get(part[:1], "?") + part[1:] for part in parts)


@command("df")
async def df(call: Call) -> int:
    options, paths = split_options(call.arguments)
    tree = call.tree
    for path in paths:
        _existing(call.shell, path)
    total, free = call.phone.profile.storage_bytes, tree.free_bytes()
    used = total - free
    if "h" in options:
        row = f"{total / 1e9:>8.1f}G {used / 1e9:>8.1f}G {free / 1e9:>8.1f}G"
    else:
        row = f"{total // 1024:>10} {used // 1024:>10} {free // 1024:>10}"
    head = "Filesystem      1K-blocks       Used  Available Use% Mounted on"
    await call.io.out(f"{head}\n/dev/block/dm-0 {row} {100 * used // total:>3}% /data\n".encode())
    return 0


@command("mkdir")
async def mkdir(call: Call) -> int:
    options, paths = split_options(call.arguments, with_value="m")
    for path in paths:
        tree = call.tree
        target = tree.host(path, call.shell.cwd)
        if target.is_dir() and "p" in options:
            continue
        tree.check_writable(path, call.shell.cwd)
        tree.claim(1, path)
        _make_folder(target, path, parents="p" in options)
    return 0


def _make_folder(target: Path, path: str, *, parents: bool) -> None:
    try:
        target.mkdir(parents=parents, exist_ok=parents)
    except OSError as error:
        raise refusal(error.errno or errno.EIO, path) from error


@command("rm", "rmdir")
async def rm(call: Call) -> int:
    options, paths = split_options(call.arguments)
    recursive = bool({"r", "R"} & set(options))
    for path in paths:
        call.tree.check_writable(path, call.shell.cwd)
        target = call.tree.host(path, call.shell.cwd)
        if not os.path.lexists(target):
            if "f" in options:
                continue
            raise refusal(errno.ENOENT, path)
        if target.is_dir() and not target.is_symlink():
            if not recursive:
                raise refusal(errno.EISDIR, path)
            if _has_few(target):  # a thread would take longer
                shutil.rmtree(target, ignore_errors=True)
            else:
                await asyncio.to_thread(shutil.rmtree, target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
    return 0


def _has_few(folder: Path) -> bool:
    """Return whether little lies below a folder, so that it is removed in a moment."""
    found, folders = 0, [str(folder)]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                found += 1
                if found > _FEW:
                    return False
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return True


def _destination(shell: Session, source: str, target: str) -> Path:
    tree = shell.tree
    tree.check_writable(target, shell.cwd)
    host = tree.host(target, shell.cwd)
    if host.is_dir():
        return host / Path(source).name
    if not host.parent.is_dir():
        raise refusal(errno.ENOENT, target)
    return host


def _pairs(shell: Session, arguments: list[str]) -> tuple[dict[str, str], list[tuple[str, Path, Path]]]:
    options, paths = split_options(arguments)
    if len(paths) < 2:
        raise CommandError('Needs 2 arguments (see "help")')
    *sources, target = paths
    return options, [(source, _existing(shell, source), _destination(shell, source, target)) for source in sources]


@command("mv")
async def mv(call: Call) -> int:
    for source, start, end in _pairs(call.shell, call.arguments)[1]:
        call.tree.check_writable(source, call.shell.cwd)
        move(start, end)
    return 0


@command("cp")
async def cp(call: Call) -> int:
    options, pairs = _pairs(call.shell, call.arguments)
    for source, start, end in pairs:
        if start.is_dir():
            if not {"r", "R", "a"} & set(options):
                raise CommandError(f"Skipped dir '{source}'")
            await asyncio.to_thread(shutil.copytree, start, end, dirs_exist_ok=True)
            continue
        call.tree.check_readable(source, call.shell.cwd)
        call.tree.claim(start.stat().st_size, source)
        await asyncio.to_thread(shutil.copy, start, end)
    return 0


@command("chmod")
async def chmod(call: Call) -> int:
    words = [word for word in call.arguments if word not in ("-R", "-f")]
    if len(words) < 2:
        raise CommandError('Needs 2 arguments (see "help")')
    for path in words[1:]:
        call.tree.check_writable(path, call.shell.cwd)
        target = _existing(call.shell, path)
        target.chmod(_mode(words[0], target.stat().st_mode & 0o7777))
    return 0


def _mode(text: str, before: int) -> int:
    if text.isdigit():
        return int(text, 8)
    bits = {"x": 0o111, "r": 0o444, "w": 0o222}
    who, sign, letters = text.partition("+") if "+" in text else text.partition("-")
    mask = {"u": 0o700, "g": 0o070, "o": 0o007}.get(who, 0o777)
    if not sign or not all(letter in bits for letter in letters):
        raise CommandError(f"bad mode '{text}'")
    change = sum(bits[letter] for letter in set(letters)) & mask
    return before | change if sign == "+" else before & ~change


@command("ln")
async def ln(call: Call) -> int:
    options, paths = split_options(call.arguments)
    if "s" not in options or len(paths) != 2:
        raise CommandError("only `ln -s TARGET NAME` on a virtual phone")
    link = call.tree.writable_file(paths[1], call.shell.cwd)
    if "f" in options:
        link.unlink(missing_ok=True)
    call.tree.link(link, paths[0])
    return 0


@command("touch")
async def touch(call: Call) -> int:
    for path in split_options(call.arguments)[1]:
        call.tree.writable_file(path, call.shell.cwd).touch()
    return 0


@command("find")
async def find(call: Call) -> int:
    start = call.arguments[0] if call.arguments and not call.arguments[0].startswith("-") else "."
    wanted = dict(zip(call.arguments[1::2], call.arguments[2::2], strict=False))
    target = _existing(call.shell, start)
    for entry in [target, *sorted(target.rglob("*"))]:
        kind = wanted.get("-type")
        if (kind == "f" and not entry.is_file()) or (kind == "d" and not entry.is_dir()):
            continue
        if "-name" in wanted and not entry.match(wanted["-name"]):
            continue
        below = entry.relative_to(target)
        await call.io.out(f"{start if str(below) == '.' else Path(start) / below}\n".encode())
    return 0
