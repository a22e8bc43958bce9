"""Take a bundle in, as an experiment of another lab: its blocks are over, and its figures are made here anew."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from pydantic import ValidationError
from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError

from orchestrator.ledger import Ledger
from orchestrator.ledger.incoming.imports import Beside, Imported, Last, Tried
from orchestrator.ledger.queue.lanes import candidates_of
from orchestrator.ledger.records import parsed
from orchestrator.ledger.rows import JobState, Origin
from orchestrator.model import problem
from orchestrator.model.errors import SetupError, Unstorable
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.experiment import Experiment
from orchestrator.model.job import ANY_JOB, AnyJob
from orchestrator.model.stopped import Stopped

from .manifest import (
    BLOCKS,
    EXPERIMENT,
    FILES,
    MANIFEST,
    MOST_BYTES,
    MOST_FILE_BYTES,
    MOST_FILES,
    MOST_LINE_BYTES,
    PIECE,
    AttemptLine,
    JobLine,
    Line,
    Manifest,
)

LONGEST_NAME = 60
FAULTS = (ValueError, KeyError, TypeError, AttributeError, RecursionError, Unstorable, IntegrityError, DataError)


@dataclass(frozen=True)
class Brought:
    """The experiment that a bundle brought."""

    experiment: str
    """The experiment's id here."""
    origin: Origin
    blocks: int
    created: bool
    """False: it was here already, and nothing of it was changed."""
    files: int = 0
    """The files of models and inputs that came with it and were not here."""


Keep = Callable[[IO[bytes], str], bool]
"""Keeps a file under the SHA-256 that it must have; returns whether it was not here. Raises ValueError, OSError."""


def take_in(
    ledger: Ledger, file: Path, keep: Keep | None = None, note: Callable[[Brought], Last] | None = None
) -> Brought:
    """Store the experiment of a bundle, all or nothing. Its name, its id and the serials of its devices bear the lab's
    name, so none is taken for one of this farm. One that is here already gets the files that it lacks.

    `keep`: for files that it brings (None: they are left); `note`: gives what is done in the transaction in which it
    comes to be. Raises SetupError for a file that is no bundle, or not a whole one."""
    with _opened(file) as bundle:
        manifest = _manifest(bundle, file)
        here = _Here(manifest)
        try:
            head = json.loads(bundle.read(EXPERIMENT))
            experiment = Experiment.model_validate_json(head["spec"])
            exclusions = [Exclusion(**each) for each in json.loads(head["exclusions"])]
            stopped = [Stopped.model_validate(each) for each in head["stopped"]]
            here.named(experiment.name)
            templates = {str(digest): json.loads(each["body"]) for digest, each in head["templates"].items()}
        except FAULTS as e:
            _refuse(file, EXPERIMENT, e)
        if here.experiment in ledger.experiment_names():
            again = Brought(here.experiment, here.origin, 0, False, _keep_files(bundle, file, manifest, keep))
            if again.files and note is not None:
                note(again)(None)
            return again
        blocks, files = _Blocks(here, templates), 0

        def last(connection: Connection | None) -> None:
            if note is not None:
                note(Brought(here.experiment, here.origin, blocks.count, True, files))(connection)

        try:
            files = _keep_files(bundle, file, manifest, keep)
            created = ledger.adopt(
                here.experiment,
                experiment.model_copy(update={"name": here.name}),
                blocks.read(bundle),
                Beside(
                    [replace(each, serial=here.serial(each.serial)) for each in exclusions],
                    here.origin,
                    {tuple(map(here.serial, each.devices)): each for each in stopped},
                    last,
                ),
            )
        except FAULTS as e:
            _refuse(file, f"{BLOCKS}, line {blocks.line}", e)
    return Brought(here.experiment, here.origin, blocks.count, created, files)


def _keep_files(bundle: ZipFile, file: Path, manifest: Manifest, keep: Keep | None) -> int:
    """Return how many were not here."""
    new = 0
    for name in manifest.files if keep is not None else ():
        try:
            with bundle.open(FILES + name) as source:
                new += keep(source, name)  # type: ignore[misc]
        except (OSError, ValueError) as e:
            remedy = "make room on the farm's disk" if isinstance(e, OSError) else REMEDY
            raise SetupError(f"{file}: its file {name} cannot be kept: {e}", remedy=remedy) from e
    return new


@contextmanager
def _opened(file: Path) -> Iterator[ZipFile]:
    """Open a bundle that has its parts and nothing else; nothing of it is written to a disk by its own name."""
    try:
        with ZipFile(file) as bundle:
            parts = [each for each in bundle.infolist() if not _is_file(each)]
            names = [each.filename for each in parts]
            if sorted(names) != sorted(MOST_BYTES):
                odd = sorted({*names} ^ {*MOST_BYTES}) or names
                raise SetupError(f"{file} is no bundle: it has other parts: {odd[0][:80]!r}", remedy=REMEDY)
            for each in bundle.infolist():
                _check(file, each, MOST_BYTES.get(each.filename, MOST_FILE_BYTES))
            yield bundle
    except (BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, OSError) as e:
        if isinstance(e, OSError) and e.filename is not None:
            raise SetupError(f"{file}: cannot be read: {e.strerror}", remedy="check the path") from e
        raise SetupError(f"{file} is no bundle, or was cut: {e}", remedy=REMEDY) from e


REMEDY = "copy it again from the lab that wrote it, with `farm export --bundle`"


def _is_file(part: ZipInfo) -> bool:
    return re.fullmatch(FILES + "[0-9a-f]{64}", part.filename) is not None


def _check(file: Path, part: ZipInfo, most: int) -> None:
    if part.flag_bits & 1 or part.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise SetupError(f"{file}: {part.filename} is packed in a way that no bundle is", remedy=REMEDY)
    if part.file_size > most:
        told = f"has {part.file_size} bytes unpacked, {most} bytes at most are read"
        raise SetupError(f"{file}: {part.filename} {told}", remedy=REMEDY)


def _manifest(bundle: ZipFile, file: Path) -> Manifest:
    """Return it once every part is what it says. Raises SetupError."""
    try:
        found = Manifest.model_validate_json(bundle.read(MANIFEST))
    except ValidationError as e:
        _refuse(file, MANIFEST, e)
    if found.parts.keys() != MOST_BYTES.keys() - {MANIFEST}:
        raise SetupError(f"{file}: {MANIFEST} tells of other parts: {', '.join(found.parts)[:80]}", remedy=REMEDY)
    files = {each.filename.removeprefix(FILES): each.file_size for each in bundle.infolist() if _is_file(each)}
    if files != found.files or len(files) > MOST_FILES or sum(files.values()) > MOST_FILE_BYTES:
        why = f"it has other files than {MANIFEST} says, or more than {MOST_FILES}, or than {MOST_FILE_BYTES} bytes"
        raise SetupError(f"{file}: {why}", remedy=REMEDY)
    for name, told in found.parts.items():
        digest = hashlib.sha256()
        with bundle.open(name) as part:
            for piece in iter(lambda: part.read(PIECE), b""):
                digest.update(piece)
        if digest.hexdigest() != told.sha256:
            raise SetupError(f"{file}: {name} is not what {MANIFEST} says: it was changed or cut", remedy=REMEDY)
    return found


class _Here:
    """The names that things of another lab have here."""

    def __init__(self, manifest: Manifest) -> None:
        self._mark, self.lab = f"@{manifest.lab}", manifest.lab
        content = (manifest.lab, manifest.experiment, *(manifest.parts[name].sha256 for name in (EXPERIMENT, BLOCKS)))
        self._digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
        of = manifest.experiment, manifest.submitted_at, manifest.submitter, manifest.exported_at, manifest.version
        self.origin = Origin(manifest.lab, *of)

    def named(self, name: str) -> None:
        """Make the experiment's name and id of the name that it had."""
        more = f"-from-{self.lab}"
        self.name = name[: LONGEST_NAME - len(more)] + more
        self.experiment = f"{self.name}-{self._digest}"

    def serial(self, serial: str) -> str:
        return serial + self._mark if serial else ""


class _Blocks:
    """The jobs of a bundle with their attempts, one after the other."""

    def __init__(self, here: _Here, templates: dict[str, Any]) -> None:
        self._here, self._templates = here, templates
        self._known = dict[tuple[str, str], AnyJob]()
        self.count = self.line = 0

    def read(self, bundle: ZipFile) -> Iterator[Imported]:
        """Raise one of `FAULTS` at the line `line`."""
        with bundle.open(BLOCKS) as part:
            for _, rows in groupby(self._lines(part), lambda row: row.job_id):
                yield self._imported(list(rows))
                self.count += 1

    def _lines(self, part: IO[bytes]) -> Iterator[Line]:
        for text in iter(lambda: part.readline(MOST_LINE_BYTES + 1), b""):
            self.line += 1
            if len(text) > MOST_LINE_BYTES:
                raise ValueError(f"it has more than {MOST_LINE_BYTES} bytes")
            yield Line.model_validate_json(text)

    def _imported(self, rows: list[Line]) -> Imported:
        told = rows[0].job_row
        job = self._job(told)
        tries = [self._tried(job, row.attempt_row, row.record) for row in rows if row.attempt_row is not None]
        outcome = {"outcome": told.outcome, "cause": told.cause, "attempts": told.attempts}
        return Imported(job, tuple(tries), JobState(told.state), outcome)

    def _job(self, told: JobLine) -> AnyJob:
        key = (told.template, told.candidates)
        if key not in self._known:
            serials = [self._here.serial(each) for each in candidates_of(told.candidates)]
            content = {**self._templates[told.template], "experiment_id": self._here.experiment}
            self._known[key] = ANY_JOB.validate_python({**content, "candidates": serials, "block": 0})
        return self._known[key].with_block(told.block)

    def _tried(self, job: AnyJob, own: AttemptLine, told: dict[str, Any] | None) -> Tried:
        serial, record = self._here.serial(own.serial), None
        if told is not None:
            record = parsed(json.dumps(told).encode())
            device = record.device.model_copy(update={"serial": serial})
            names = {"experiment_id": self._here.experiment, "job_id": job.job_id, "cell_id": job.cell.cell_id}
            record = record.model_copy(update={**names, "device": device, "attempt": own.attempt})
        return Tried(own.attempt, serial, own.host, own.started_at, own.ended_at, own.outcome, own.cause, record)


def _refuse(file: Path, where: str, error: Exception) -> NoReturn:
    why = problem.describe(error.errors()[0]) if isinstance(error, ValidationError) else str(error).partition("\n")[0]
    raise SetupError(f"{file}: {where}: {why}", remedy=f"{REMEDY}; or update pocketfarm here") from error
