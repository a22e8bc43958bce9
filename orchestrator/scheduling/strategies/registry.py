"""The strategy of an experiment, by what its file asks for."""

from __future__ import annotations

from orchestrator.coordination.artifacts import Artifacts

from .grid import Grid
from .limit_search import LimitSearcher
from .own import OwnStrategy
from .strategy import Place, Strategy
from .until_precise import UntilPrecise


def strategy_for(place: Place, artifacts: Artifacts) -> Strategy:
    """A new one. Raises ModelFileError: a user's own file is not there."""
    choice = place.experiment.strategy
    if choice is not None and choice.limit_search is not None:
        return LimitSearcher(place)
    if choice is not None:
        return OwnStrategy(place, artifacts.path(str(choice.file_sha256)))
    if place.experiment.sampling.target_interval is not None:
        return UntilPrecise(place)
    return Grid()
