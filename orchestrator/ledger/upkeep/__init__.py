"""Look after the ledger: check it, copy it, put it back, archive what is old and make room."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.model.errors import SetupError
from orchestrator.system.private_files import make_file, settle


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give an empty file to write to; it takes the place of `path` where all goes well. Raises SetupError."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        make_file(partial)
        yield partial
        settle(partial, path)
    except OSError as e:
        raise SetupError(f"{path}: cannot be written: {e.strerror}", remedy="give a folder with room to write") from e
    finally:
        partial.unlink(missing_ok=True)
