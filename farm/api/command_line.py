"""The commands of `farm` as functions, on this machine, or on another one through ssh, each in a process of its own.

Whatever a command prints with `--json` is its answer, so that a notebook and a terminal never disagree.
"""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from farm.doors.one_file import in_one_file
from orchestrator.model.errors import FarmError

Option = str | int | float | bool | Path | Sequence[str] | None
"""True gives the option alone, a sequence repeats it, None and False leave it out."""

TIMED_OUT, SSH_FAILED = 124, 255
"""Exit statuses."""


class CommandFailed(FarmError):
    """A command ended with an error; it says what, where and how to mend it."""

    cause = "command"


@dataclass(frozen=True)
class CommandLine:
    """The machine on which commands run. Every method raises CommandFailed for what a command refuses or cannot do."""

    state: str = ""
    """The farm's state folder there; empty: FARM_STATE or .farm."""
    host: str = ""
    """The machine's name for ssh; empty: this machine."""
    command: str = "farm"
    """The farm's command on that host."""
    ssh: tuple[str, ...] = ("ssh",)
    """The words that call ssh, with options of one's own."""

    def answer(self, *words: str, **options: Option) -> Any:
        """Return a command's answer with `--json`. An exit status that is a verdict (1) is no error."""
        done = self._run([*words, *as_words(options), "--json"])
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise _failed(words, done) from None
        if isinstance(answer, dict) and set(answer) == {"error"}:
            raise _told(answer["error"])
        return answer

    def output(self, *words: str, **options: Option) -> bytes:
        """Return what a command writes to its standard output."""
        done = self._run([*words, *as_words(options)])
        if done.returncode:
            raise _failed(words, done)
        return done.stdout

    def lines(self, *words: str, **options: Option) -> Iterator[Any]:
        """JSON documents of a command that prints one a line for as long as it runs; it ends with the iterator.

        One that gave up waiting is no error."""
        line = self._line([*words, *as_words(options)])
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            try:
                yield from map(json.loads, process.stdout)
            except BaseException:  # whoever is interrupted leaves no process
                process.terminate()
                raise
            said = process.communicate()[1]
            if process.returncode not in (0, TIMED_OUT):
                raise _failed(words, subprocess.CompletedProcess(line, process.returncode, b"", said))

    def devices(self) -> list[dict[str, Any]]:
        """Devices by serial: facts and state."""
        return list(self.answer("devices"))

    def experiments(self) -> list[dict[str, Any]]:
        """All experiments, each in brief."""
        return list(self.answer("status"))

    def status(self, name: str) -> dict[str, Any]:
        """The standing of an experiment, by its id or name."""
        return dict(self.answer("status", name))

    def submit(self, file: str, *, again: bool) -> str:
        """Submit the experiment of a file; its id."""
        return str(self.answer("run", file, again=again, yes=True)["experiment"])

    def looks(self, experiment_id: str, timeout: str | None) -> Iterator[dict[str, Any]]:
        """Look at an experiment again and again, until it is over or for this time."""
        return self.lines("watch", experiment_id, stream=True, timeout=timeout)

    def results(self, experiment_id: str) -> list[dict[str, Any]]:
        """Summaries of an experiment's results."""
        return list(self.answer("results", experiment_id)["summaries"])

    def table(self, experiment_id: str, what: str) -> bytes:
        """Rows of samples, layers, power, predictions or tokens, as Parquet."""
        return self.output("export", experiment_id, what=what, format="parquet", output="-")

    def report(self, experiment_id: str) -> str:
        """The HTML report."""
        return self.output("report", experiment_id, output="-").decode()

    def cancel(self, target: str) -> list[str]:
        """Cancel what is open of an experiment, or one job; the ids of the jobs."""
        return list(self.answer("cancel", target)["cancelled"])

    def retry(self, target: str) -> list[str]:
        """Retry what was lost, failed or killed of an experiment, or one job; the ids of the jobs."""
        return list(self.answer("retry", target)["retried"])

    @contextmanager
    def folder(self, files: Mapping[str, Path] | None = None) -> Iterator[str]:
        """A new folder there with these files by name; it is removed at the end."""
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(TemporaryDirectory(prefix="farm-models-")))
            files = {name: in_one_file(path, scratch / name) for name, path in (files or {}).items()}
            if not self.host:
                here = stack.enter_context(TemporaryDirectory(prefix="farm-"))
                for name, path in files.items():
                    (Path(here) / name).symlink_to(path.absolute())
                yield here
                return
            there = self._there("mktemp -d").decode().strip()
            stack.callback(lambda: self._there(f"rm -rf {shlex.quote(there)}"))
            self._send(files, there)
            yield there

    def fetch(self, folder: str, into: Path) -> None:
        """Copy what lies in a folder there into a new one of this machine."""
        into.mkdir()
        if not self.host:
            for path in Path(folder).iterdir():
                (into / path.name).write_bytes(path.read_bytes())
            return
        packed = self._there(f"tar cf - -C {shlex.quote(folder)} .")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(into, filter="data")

    def _send(self, files: Mapping[str, Path], there: str) -> None:
        command = self._ssh(f"tar xf - -C {shlex.quote(there)}")
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin
            with tarfile.open(fileobj=process.stdin, mode="w|") as archive:
                for name, path in files.items():
                    archive.add(path.resolve(), name)
            said = process.communicate()[1]
        if process.returncode:
            raise _unreachable(self.host, said)

    def _there(self, script: str) -> bytes:
        done = subprocess.run(self._ssh(script), capture_output=True, check=False)
        if done.returncode:
            raise _unreachable(self.host, done.stderr)
        return done.stdout

    def _ssh(self, script: str) -> list[str]:
        return [*self.ssh, "-o", "BatchMode=yes", "--", self.host, script]

    def _line(self, words: Sequence[str]) -> list[str]:
        own = shlex.split(self.command) if self.host else [sys.executable, "-m", "farm.cli"]
        line = [*own, *words, *(["--state", self.state] if self.state else [])]
        return self._ssh(shlex.join(line)) if self.host else line

    def _run(self, words: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(self._line(words), capture_output=True, check=False)
        if self.host and done.returncode == SSH_FAILED:
            raise _unreachable(self.host, done.stderr)
        return done


def as_words(options: Mapping[str, Option]) -> list[str]:
    """Options as a command takes them: `on_what="x"` is `--on-what x`."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            several = [value] if isinstance(value, str | int | float | Path) else value
            words += [word for each in several for word in (option, str(each))]
    return words


def _told(error: Mapping[str, Any]) -> CommandFailed:
    failed = CommandFailed(error["message"], device=error.get("device"), remedy=error.get("remedy"))
    failed.cause = error["cause"]
    return failed


def _failed(words: Sequence[str], done: subprocess.CompletedProcess[bytes]) -> CommandFailed:
    said = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
    return CommandFailed(f"farm {shlex.join(words)}: {said.removeprefix('error: ')}")


def _unreachable(host: str, said: bytes) -> CommandFailed:
    return CommandFailed(
        f"{host} cannot be reached: {said.decode(errors='replace').strip()}",
        remedy=f"`ssh {host} farm --version` must work without a password; name the command with Farm(command=...)",
    )
