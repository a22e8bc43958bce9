"""Write the JSON Schemas and the documentation's table of axes again: `python -m orchestrator.spec.json_schemas`.

They are generated from the models and never edited; a test fails where a committed one is stale.
"""

from __future__ import annotations

import json
from pathlib import Path

from kernels.plan.schema import PLAN_SCHEMA, plan_schema
from orchestrator.model.event import EVENT
from orchestrator.model.experiment import Experiment

from .axis_table import with_axis_rows

_ROOT = Path(__file__).parents[2]
EVENT_SCHEMA = _ROOT / "device_agent" / "schema" / "event.schema.json"
EXPERIMENT_SCHEMA = _ROOT / "experiments" / "experiment.schema.json"
EXPERIMENT_PAGE = _ROOT / "docs" / "howto" / "write-an-experiment.md"
COMMANDS_PAGE = _ROOT / "docs" / "cli.md"


def schemas() -> dict[Path, str]:
    """Path of each committed file -> what it must hold."""
    return {
        PLAN_SCHEMA: plan_schema(),
        EVENT_SCHEMA: _text(EVENT.json_schema()),
        EXPERIMENT_SCHEMA: _text(Experiment.model_json_schema()),
        EXPERIMENT_PAGE: with_axis_rows(EXPERIMENT_PAGE.read_text(), "field"),
        COMMANDS_PAGE: with_axis_rows(COMMANDS_PAGE.read_text(), "option"),
    }


def main() -> None:
    """Write every schema to its place in the repository."""
    for path, text in schemas().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _text(schema: dict[str, object]) -> str:
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    main()
