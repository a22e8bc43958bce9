"""The committed JSON Schemas are current."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.nightly.suite_schema import SUITE_SCHEMA, suite_schema
from orchestrator.spec.json_schemas import schemas

CURRENT = {**schemas(), SUITE_SCHEMA: suite_schema()}


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.name)
def test_committed_schema_is_current(path: Path) -> None:
    assert path.is_file(), "run `make schemas`"
    assert path.read_text() == CURRENT[path], f"{path.name} is stale: run `make schemas`"
