"""`farm schema`: print JSON Schemas."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .output import JsonOption, log, option, print_json


class Kind(StrEnum):
    EXPERIMENT = "experiment"
    SUITE = "suite"
    RECORD = "record"
    EVENT = "event"
    PLAN = "plan"


def schema(
    kind: Annotated[Kind, typer.Argument(help="What the schema describes.")] = Kind.EXPERIMENT,
    output: Annotated[Path | None, option("--output, -o FILE", "File to write; without it standard output.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema of experiment or suite files (for an editor), records, agent events or plans. Always JSON.

    With `# yaml-language-server: $schema=experiment.schema.json` as its first line, an experiment file completes and
    checks itself in most editors.

    Example: `farm schema -o experiment.schema.json`
    """
    found = schema_of(kind)
    if output is None:
        print_json(found)
        return
    import json

    output.write_text(json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json({"file": output})
    log().print(f"wrote {output}")


def schema_of(kind: Kind) -> dict[str, Any]:
    """The JSON Schema of one kind."""
    from kernels.plan.model import Plan
    from orchestrator.model.event import EVENT
    from orchestrator.model.experiment import Experiment
    from orchestrator.model.record import Record
    from orchestrator.nightly import Suite

    if kind is Kind.EVENT:
        return EVENT.json_schema()
    models: dict[Kind, Any] = {
        Kind.EXPERIMENT: Experiment,
        Kind.SUITE: Suite,
        Kind.RECORD: Record,
        Kind.PLAN: Plan,
    }
    found: dict[str, Any] = models[kind].model_json_schema()
    return found
