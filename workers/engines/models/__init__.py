"""Models of cells, apart from the engine that runs them: graph, inputs, reference, and outputs held against it."""

from .models import Arrays, Models
from .predictions import predictions
from .single_flight_cache import SingleFlightCache
from .verify_outputs import rounding_doubts, verify, wrong

__all__ = ["Arrays", "Models", "SingleFlightCache", "predictions", "rounding_doubts", "verify", "wrong"]
