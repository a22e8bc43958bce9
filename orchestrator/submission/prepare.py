"""Check an experiment and keep its files, so that it may be stored and run without the folder that it came from."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.errors import SpecError
from orchestrator.model.axes import MATRIX_AXES
from orchestrator.model.experiment import Experiment, Matrix

from .workload_files import with_files


def prepare(experiment: Experiment, base: Path, artifacts: Artifacts) -> Experiment:
    """The experiment with its files, which lie relative to `base`, kept and named by their content.

    Raises SpecError for a name that nobody knows and for what no phone can meet, ModelFileError where a file cannot be
    used.
    """
    _check_names(experiment.matrix)
    for path, why in experiment.conditions.impossible():
        raise SpecError(f"{'.'.join(('conditions', *path))}: {why}")
    return with_files(experiment, base, artifacts)


def _check_names(matrix: Matrix) -> None:
    """A typing error is told now; whether an algorithm fits a network is the compiler's to say."""
    for name, values in matrix.options.items():
        known = dict.fromkeys(word for backend in MATRIX_AXES[name].names for word in MATRIX_AXES[name].known(backend))
        for asked in (str(value).split(" ")[0] for value in values if known):
            if asked not in known:
                near = get_close_matches(asked, known, n=1)
                hint = f"did you mean `{near[0]}`? " if near else ""
                raise SpecError(f"matrix.{name}: there is no `{asked}`; {hint}known: {', '.join(known)}")
