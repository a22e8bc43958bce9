"""Write the plan's JSON Schema for readers in other languages: `python -m kernels.plan.schema`."""

from __future__ import annotations

import json
from pathlib import Path

from .model import Plan

PLAN_SCHEMA = Path(__file__).parents[2] / "device_agent" / "schema" / "plan.schema.json"


def plan_schema() -> str:
    """The schema's text."""
    return json.dumps(Plan.model_json_schema(), indent=2, sort_keys=True) + "\n"


def main() -> None:
    """Write the schema to its place in the repository."""
    PLAN_SCHEMA.parent.mkdir(parents=True, exist_ok=True)
    PLAN_SCHEMA.write_text(plan_schema())


if __name__ == "__main__":
    main()
