"""The committed JSON Schemas are current."""

from __future__ import annotations

from orchestrator.nightly.suite_schema import SUITE_SCHEMA, suite_schema
from orchestrator.spec.json_schemas import schemas


def test_committed_schemas_are_current() -> None:
    for path, text in {**schemas(), SUITE_SCHEMA: suite_schema()}.items():
        assert path.is_file() and path.read_text() == text, f"{path.name} is stale: run `make schemas`"
