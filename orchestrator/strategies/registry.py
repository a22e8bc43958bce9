"""The strategy of an experiment, by what its file asks for."""

from __future__ import annotations

from orchestrator.coordination.artifacts import Artifacts

from .grid import Grid
from .own import OwnStrategy
from .strategy import Place, Strategy
from .until_precise import UntilPrecise


def strategy_for(place: Place, artifacts: Artifacts) -> Strategy:
    """A new one. Raises ModelFileError: a user's own file is not there."""
    own = place.experiment.strategy
    if own is not None:
        return OwnStrategy(place, artifacts.path(str(own.file_sha256)))
    if place.experiment.sampling.target_interval is not None:
        return UntilPrecise(place)
    return Grid()
