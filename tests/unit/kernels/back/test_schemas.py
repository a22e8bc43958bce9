"""The committed JSON Schemas are current."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.spec.json_schemas import schemas


@pytest.mark.parametrize("path", schemas(), ids=lambda path: path.name)
def test_committed_schema_is_current(path: Path) -> None:
    assert path.is_file(), "run `make schemas`"
    assert path.read_text() == schemas()[path], f"{path.name} is stale: run `make schemas`"
