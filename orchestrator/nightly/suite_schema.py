"""Write the JSON Schema of suite files again: `python -m orchestrator.nightly.suite_schema` (`make schemas`)."""

from __future__ import annotations

import json
from pathlib import Path

from .suite import Suite

SUITE_SCHEMA = Path(__file__).parents[2] / "experiments" / "suites" / "suite.schema.json"


def suite_schema() -> str:
    """Generated from the model, never edited."""
    return json.dumps(Suite.model_json_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    SUITE_SCHEMA.write_text(suite_schema())
