"""Write a bundle: the rows of an experiment as the ledger has them, its report, and a manifest with their hashes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from orchestrator.ledger import queries
from orchestrator.ledger.database import Database
from orchestrator.ledger.experiments import one
from orchestrator.ledger.queue.extension import stopped_of
from orchestrator.ledger.rows import ExperimentRow
from orchestrator.ledger.upkeep import written_whole
from orchestrator.ledger.upkeep.archives.archive import head_of, over_since, parts_of
from orchestrator.model.errors import NoData, SetupError

from .manifest import (
    BLOCKS,
    EXPERIMENT,
    FILES,
    FORMAT,
    MANIFEST,
    MOST_FILE_BYTES,
    MOST_FILES,
    PIECE,
    REPORT,
    Device,
    Manifest,
    Part,
)


def write(
    database: Database,
    file: Path,
    experiment_id: str,
    *,
    lab: str,
    version: str,
    report: str,
    files_of: Callable[[str], Mapping[str, Path]] = lambda _: {},
) -> Manifest:
    """Write an experiment that is over into a file, whole or not at all. `lab`: what others call this farm; `files_of`:
    files that go along, by their SHA-256, of the JSON of a job.

    Raises NoData where it is not over or lacks raw records, SetupError where the file is there or cannot be written, or
    the experiment came from another lab.
    """
    row, head = _checked(database, file, experiment_id)
    texts = (str(each["body"]) for each in head["templates"].values())
    files = {name: path for text in texts for name, path in files_of(text).items()}
    sizes = {name: path.stat().st_size for name, path in files.items()}
    if len(sizes) > MOST_FILES or sum(sizes.values()) > MOST_FILE_BYTES:
        told = (
            f"its {len(sizes)} files have {sum(sizes.values())} bytes; {MOST_FILES} files of {MOST_FILE_BYTES} bytes go"
        )
        raise SetupError(f"{row.id}: {told}", remedy="leave out --models, and send them another way")
    seen = _Seen()
    with written_whole(file) as partial, ZipFile(partial, "w") as bundle:
        parts = {
            EXPERIMENT: _put(bundle, EXPERIMENT, [json.dumps(head).encode()]),
            BLOCKS: _put(bundle, BLOCKS, seen.lines(database, experiment_id)),
            REPORT: _put(bundle, REPORT, [report.encode()]),
        }
        for name, path in files.items():
            with path.open("rb") as source:
                _put(bundle, FILES + name, iter(lambda read=source.read: read(PIECE), b""))  # type: ignore[misc]
        made = Manifest(
            format=FORMAT, version=version, lab=lab, experiment=row.id, submitted_at=row.submitted_at,
            submitter=row.submitter, exported_at=time.time(), devices=tuple(seen.devices.values()),
            programs=tuple(sorted(seen.programs)), agents=tuple(sorted(seen.agents)), parts=parts,
            files=sizes,
        )  # fmt: skip
        _put(bundle, MANIFEST, [made.model_dump_json(indent=1).encode()])
    return made


def _checked(database: Database, file: Path, experiment_id: str) -> tuple[ExperimentRow, dict[str, Any]]:
    if file.exists():
        raise SetupError(f"{file} is there already", remedy="give another name: a bundle is never replaced")
    with database.read() as connection:
        row = one(connection, experiment_id)
        if row.origin is not None:
            raise SetupError(
                f"{row.id} was measured in the lab {row.origin.lab}", remedy="pass on the bundle that it came by"
            )
        if row.id not in over_since(connection):
            raise NoData(f"{row.id} is not over yet", remedy="wait, or `farm cancel` what is open")
        if lost := queries.pruned(connection, row.id):
            back = next(iter(filter(None, lost)), "")
            told = f"{sum(lost.values())} raw records of {row.id} are not in the ledger any more"
            raise NoData(told, remedy=f"`farm ledger adopt {back}` brings them back" if back else "no archive has them")
        head = head_of(connection, row.id)
        told_stopped = [each.model_dump(mode="json") for each in stopped_of(connection, row.id).get(row.id, [])]
    return row, {**{name: head[name] for name in ("spec", "exclusions", "templates")}, "stopped": told_stopped}


class _Seen:
    """The devices and programs of records that go by, for the manifest."""

    def __init__(self) -> None:
        self.devices, self.programs, self.agents = dict[str, Device](), set[str](), set[str]()

    def lines(self, database: Database, experiment_id: str) -> Iterator[bytes]:
        """Yield a line an attempt, and one a job that was never tried."""
        for part in parts_of(database, experiment_id):
            for row in part:
                record = None if row["record"] is None else json.loads(row["record"])
                if record is not None:
                    self._see(record)
                texts = {name: json.loads(row[name]) if row[name] else None for name in ("job_row", "attempt_row")}
                line = {"job_id": row["job_id"], **texts, "record": record}
                yield json.dumps(line, separators=(",", ":")).encode() + b"\n"

    def _see(self, record: dict[str, Any]) -> None:
        told, of = record["device"], record.get("provenance", {})
        names = {"model": told.get("model", ""), "source": told["source"], "build": told.get("fingerprint", "")}
        self.devices[told["serial"]] = Device(serial=told["serial"], **names)
        self.programs |= {of[name] for name in ("program_hash", "plan_hash") if of.get(name)}
        self.agents |= {of["agent_version"]} if of.get("agent_version") else set()


def _put(bundle: ZipFile, name: str, pieces: Iterable[bytes]) -> Part:
    """Write a part, whose bytes depend on its content alone."""
    about, digest, size = ZipInfo(name), hashlib.sha256(), 0
    about.compress_type, about.external_attr = ZIP_DEFLATED, 0o600 << 16
    with bundle.open(about, "w", force_zip64=True) as part:
        for piece in pieces:
            part.write(piece)
            digest.update(piece)
            size += len(piece)
    return Part(bytes=size, sha256=digest.hexdigest())
