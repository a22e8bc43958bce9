"""Write the committed JSON Schemas of agent events, experiments and plans: `python -m orchestrator.spec.json_schemas`.

They are generated from the models and never edited; a test fails where a committed one is stale.
"""

from __future__ import annotations

import json
from pathlib import Path

from kernels.plan.schema import PLAN_SCHEMA, plan_schema
from orchestrator.model.event import EVENT
from orchestrator.model.experiment import Experiment

_ROOT = Path(__file__).parent.parent
EVENT_SCHEMA = _ROOT / "device_agent" / "schema" / "event.schema.json"
EXPERIMENT_SCHEMA = _ROOT / "experiments" / "experiment.schema.json"


def schemas() -> dict[Path, str]:
    """Path of each committed schema -> what it must hold."""
    return {
        PLAN_SCHEMA: plan_schema(),
        EVENT_SCHEMA: _text(EVENT.json_schema()),
        EXPERIMENT_SCHEMA: _text(Experiment.model_json_schema()),
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
