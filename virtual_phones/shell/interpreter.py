"""The shell of a virtual phone: interprets scripts, runs built-in commands in process and the phone's executables as
real processes."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import glob
import os
import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from virtual_phones.adb.wire import StreamClosed
from virtual_phones.phone import Phone
from virtual_phones.programs.execution import execute, find_executable
from virtual_phones.programs.streams import BytesSink, BytesSource, Io, Sink, discard
from virtual_phones.system.tree import Tree, refusal

from .grammar import Chain, Command, Pipeline, Redirection, parse
from .releases import MKSH, later_option
from .table import CANNOT_RUN, Call, CommandError, ShellExit, Table, absence
from .words import GrammarError, Segment, Word


class Shell:
    """One shell session: a working folder, variables and the status of the last command."""

    def __init__(self, phone: Phone, commands: Table, *, root: bool = False) -> None:
        self.phone = phone
        self.commands = commands
        self.is_root = root
        self.tree: Tree = phone.tree.as_root() if root else phone.tree
        self.cwd = "/"
        self.status = 0
        self.variables = {
            "HOME": "/",
            "USER": "root" if root else "shell",
            "TMPDIR": "/data/local/tmp",
            "PATH": "/system/bin",
        }
        self._background: set[asyncio.Task[int]] = set()

    async def run(self, script: str, io: Io) -> int:
        """Run a script to its end; its exit status."""
        try:
            for chain in parse(script):
                await self._chain(chain, io)
        except GrammarError as error:
            await io.err(f"/system/bin/sh: {error}\n".encode())
            self.status = 1
        except ShellExit as leaving:
            self.status = leaving.status
        return self.status

    def as_root(self) -> Shell:
        """Return what `su` starts: root's shell in the same folder."""
        shell = Shell(self.phone, self.commands, root=True)
        shell.cwd = self.cwd
        return shell

    def child(self) -> Shell:
        """A subshell: what it changes stays with it."""
        shell = Shell(self.phone, self.commands, root=self.is_root)
        shell.cwd, shell.status, shell.variables = self.cwd, self.status, dict(self.variables)
        return shell

    async def _chain(self, chain: Chain, io: Io) -> None:
        if chain.background:
            task = asyncio.create_task(self.child()._in_background(chain, replace(io, stdin=BytesSource())))
            holders = self.phone.background if _is_detached(chain) else self._background
            holders.add(task)
            task.add_done_callback(holders.discard)
            self.status = 0
            return
        await self._pipeline(chain.first, io)
        for operator, pipeline in chain.rest:
            if (operator == "&&") == (self.status == 0):
                await self._pipeline(pipeline, io)

    async def _in_background(self, chain: Chain, io: Io) -> int:
        chain.background = False
        with contextlib.suppress(ShellExit, StreamClosed):
            await self._chain(chain, io)
        return self.status

    async def wait_for_background(self) -> None:
        """Wait as a real phone's adbd, which keeps the stream until nobody holds its output."""
        await asyncio.gather(*self._background)

    async def _pipeline(self, pipeline: Pipeline, io: Io) -> None:
        source = io.stdin
        for command in pipeline.commands[:-1]:
            sink = BytesSink()
            await self.child()._command(command, Io(source, sink, io.err))
            source = BytesSource(bytes(sink.data))
        last = io if source is io.stdin else replace(io, stdin=source)
        self.status = await self._command(pipeline.commands[-1], last)
        if pipeline.negated:
            self.status = int(self.status == 0)

    async def _command(self, command: Command, io: Io) -> int:
        try:
            if command.redirections:
                io = await self._redirected(command.redirections, io)
            if command.group is not None:
                return await self._group(command.group, io)
            assigned = {name: "".join(await self._expand(word)) for name, word in command.assignments}
            argv = list[str]()
            for word in command.words:
                if len(word) == 1 and _means_itself(word[0]):
                    argv.append(word[0].text)
                else:
                    argv += await self._expand(word)
        except OSError as error:
            await io.err(f"/system/bin/sh: can't open {error.filename}: {error.strerror}\n".encode())
            return 1
        if not argv:
            self.variables.update(assigned)
            return 0
        if not assigned:
            return await self.call(argv, io)
        saved = dict(self.variables)
        self.variables.update(assigned)
        try:
            return await self.call(argv, io)
        finally:
            for name in assigned:
                self.variables.pop(name, None)
                if name in saved:
                    self.variables[name] = saved[name]

    async def _group(self, chains: list[Chain], io: Io) -> int:
        shell = self.child()
        try:
            for chain in chains:
                await shell._chain(chain, io)
        except ShellExit as leaving:
            return leaving.status
        return shell.status

    async def call(self, argv: Sequence[str], io: Io) -> int:
        """Run one command by its words; its exit status."""
        name = argv[0]
        try:
            if self.phone.command_s and name not in MKSH:
                await asyncio.sleep(self.phone.command_s)
            if handler := self.commands.find(self.phone, name):
                if late := later_option(argv, self.phone.profile.sdk):
                    raise CommandError(f"Unknown option {late.removeprefix('-')}")
                return await handler(Call(self, list(argv[1:]), io))
            executable = find_executable(self.phone, name, self.cwd)
            return await execute(self.phone, executable, argv, self.cwd, self.variables, io)
        except CommandError as error:
            return await self._refused(name, error, io)
        except FileNotFoundError as error:
            if error.filename != name:
                return await self._failed(name, error, io)
            if lack := self.commands.lack_of(self.phone, name):
                return await self._refused(name, lack, io)
            status, words = absence(self.phone, name)
            await io.err(f"/system/bin/sh: {name}: {words}\n".encode())
            return status
        except OSError as error:
            return await self._failed(name, error, io)
        except (ValueError, LookupError, re.error) as error:
            await io.err(f"{name}: bad arguments: {shlex.join(argv[1:])} ({error})\n".encode(errors="replace"))
            return 1

    async def _refused(self, name: str, error: CommandError, io: Io) -> int:
        await io.err(f"{'' if error.bare else f'{name}: '}{error}\n".encode())
        return error.status

    async def _failed(self, name: str, error: OSError, io: Io) -> int:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
        not_run = error.errno == errno.EACCES and error.filename == name
        await io.err(f"{'/system/bin/sh' if not_run else name}: {what}\n".encode())
        return CANNOT_RUN if not_run else 1

    # words -----------------------------------------------------------------

    async def _expand(self, word: Word) -> list[str]:
        """The words that one word becomes: variables, substitutions, splitting and file names."""
        if word and all(map(_means_itself, word)):
            return ["".join(segment.text for segment in word)]
        fields: list[str] = [""]
        patterns: list[str] = [""]
        empty = not any(segment.quoted or segment.kind == "text" for segment in word)
        for segment in word:
            text = segment.text if segment.kind == "text" else await self._value(segment.kind, segment.text)
            pieces = [text] if segment.quoted or segment.kind == "text" else text.split() or [""]
            for number, piece in enumerate(pieces):
                if number:
                    fields.append("")
                    patterns.append("")
                fields[-1] += piece
                patterns[-1] += glob.escape(piece) if segment.quoted else piece
        if empty and fields == [""]:
            return []
        return [name for text, pattern in zip(fields, patterns, strict=True) for name in self._glob(text, pattern)]

    async def _value(self, kind: str, text: str) -> str:
        if kind == "variable":
            special = {"?": str(self.status), "$": "1"}
            return special.get(text, self.variables.get(text, ""))
        sink = BytesSink()
        await self.child().run(text, Io(BytesSource(), sink, discard))
        return sink.data.decode(errors="replace").rstrip("\n")

    def _glob(self, text: str, pattern: str) -> list[str]:
        if not glob.has_magic(pattern.replace("[[]", "").replace("[*]", "").replace("[?]", "")):
            return [text]
        root = str(self.phone.tree.root)
        absolute = posixpath.normpath(posixpath.join(self.cwd, pattern))
        files = {path[len(root) :] for path in glob.glob(glob.escape(root) + absolute)}  # noqa: PTH207 (Path.glob has no escape)
        closed = {path for path in self.phone.tree.closed if PurePosixPath(path).match(absolute)}
        found = sorted(files | closed)
        relative = not pattern.startswith("/")
        return [posixpath.relpath(path, self.cwd) if relative else path for path in found] or [text]

    # redirections ------------------------------------------------------------

    async def _redirected(self, redirections: list[Redirection], io: Io) -> Io:
        sinks: dict[int, Sink] = {1: io.out, 2: io.err}
        stdin = io.stdin
        for redirection in redirections:
            target = "".join(await self._expand(redirection.target))
            if redirection.operator == "<":
                stdin = BytesSource(b"" if target == "/dev/null" else self.tree.read(target, self.cwd))
            elif redirection.operator == ">&":
                sinks[redirection.descriptor] = sinks[int(target)] if target in ("1", "2") else discard
            else:
                sink = self._file_sink(target, append=redirection.operator == ">>")
                for descriptor in (1, 2) if redirection.descriptor < 0 else (redirection.descriptor,):
                    sinks[descriptor] = sink
        return Io(stdin, sinks[1], sinks[2])

    def _file_sink(self, target: str, *, append: bool) -> Sink:
        if self.tree.normal(target, self.cwd) == "/dev/null":
            return discard
        if node := self._node(target):
            return self._node_sink(node)
        path = self.tree.writable_file(target, self.cwd)
        if not append:
            path.write_bytes(b"")

        async def write(data: bytes) -> None:
            if self.phone.tree.full:
                raise refusal(errno.ENOSPC, target)
            with path.open("ab") as file:
                file.write(data)

        return write

    def _node(self, target: str) -> str:
        """The node's own path, where root names one through whatever link; empty for everything else."""
        if not self.is_root:
            return ""
        path = self.tree.normal(os.path.realpath(self.tree.host(target, self.cwd)))
        return path if path.startswith(("/sys/", "/proc/")) else ""

    def _node_sink(self, node: str) -> Sink:
        async def store(data: bytes) -> None:
            self.phone.write_node(node, data.decode(errors="replace"))

        return store


def _means_itself(segment: Segment) -> bool:
    return segment.kind == "text" and (segment.quoted or not glob.has_magic(segment.text))


def _is_detached(chain: Chain) -> bool:
    """Return whether no command of the chain holds the shell's own output, so that the shell may end before it."""
    pipelines = [chain.first, *(pipeline for _, pipeline in chain.rest)]
    commands = [command for pipeline in pipelines for command in pipeline.commands]
    outputs = [{redirection.descriptor for redirection in command.redirections} for command in commands]
    return all({1, 2} <= output or -1 in output for output in outputs)
