"""Plan a night: read the suite and its experiments, put both sides into each, keep the files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from orchestrator import spec
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model import problem
from orchestrator.model.errors import SpecError
from orchestrator.model.experiment import Experiment, Side, Sides

from .night import Night
from .steps import first_waves
from .suite import Suite

REMEMBERED_NIGHTS = 7
"""A phone that took part in one of so many nights is expected."""


def plan(suite: Suite, file: Path, due_at: float, now: float, *, scheduled: bool, artifacts: Artifacts) -> Night:
    """The night with its parts and first waves. Raises SpecError, ModelFileError where a file cannot be used."""
    parts = tuple(_part(suite, file, name, artifacts) for name in suite.experiments)
    names = [part.name for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"{file}: experiments: two of them are called `{name}`", remedy="give each its own `name`")
    night = bare(suite, file, due_at, scheduled=scheduled)
    night = night.model_copy(update={"began_at": now, "parts": parts})
    return night.model_copy(update={"waves": first_waves(night)})


def bare(suite: Suite, file: Path, due_at: float, *, scheduled: bool) -> Night:
    """A night of which nothing is known but when it is due."""
    stamp = datetime.fromtimestamp(due_at, UTC).replace(microsecond=0, tzinfo=None).isoformat()
    return Night(
        night_id=f"{suite.name}@{stamp}",
        suite=suite,
        file=str(file),
        scheduled=scheduled,
        due_at=due_at,
        ends_at=due_at + suite.budget,
    )


def not_run(night: Night, *why: str) -> Night:
    """The same, as a result: it did not run."""
    return night.model_copy(update={"problems": (*night.problems, *why), "outcome": "not_run"})


def expected(suite: Suite, earlier: Iterable[Night]) -> tuple[str, ...]:
    """Serials that should take part: those that the suite names, else those of the nights before."""
    if suite.expected:
        return suite.expected
    return tuple(sorted({serial for night in earlier for serial in night.devices}))


def _part(suite: Suite, file: Path, name: str, artifacts: Artifacts) -> Experiment:
    """An experiment of the suite, as it is run at night."""
    path = file.parent / name
    asked = spec.load(path)
    sampling = {**asked.sampling.model_dump(), "blocks": suite.rounds, "target_interval": None, "order": "abba"}
    update = {
        "sides": Sides(baseline=_placed(suite.sides.baseline, file), candidate=_placed(suite.sides.candidate, file)),
        "sampling": {**sampling, "canary": suite.canary},
        **({"devices": suite.devices} if suite.devices is not None else {}),
    }
    try:
        made = Experiment.model_validate({**asked.model_dump(), **update})
    except ValidationError as e:
        raise SpecError(f"{file}: {path} cannot run on two sides: {problem.describe(e.errors()[0])}") from e
    return prepare(made, path.parent, artifacts)


def _placed(side: Side, file: Path) -> Side:
    """Its files are relative to the suite's, not to the experiment's."""

    def place(name: str) -> str:
        return str((file.parent / name).absolute())

    found = {name: place(given) for name in ("onnx", "agent") if (given := getattr(side, name))}
    engine = {name: place(folder) for name, folder in side.engine.items()}
    return side.model_copy(update={**found, "engine": engine})
