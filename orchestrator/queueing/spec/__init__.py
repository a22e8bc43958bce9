"""The spec of a queueing experiment: one YAML file, validated."""

from __future__ import annotations

from .answers import Answer
from .arrivals import Arrivals, ClosedArrivals, TraceArrivals
from .distributions import Distribution, Exponential, Fixed, Gamma, LedgerCell, Lognormal, Samples, Uniform, Weibull
from .inference import Inference
from .queueing import Batch, Limits, PolicyChoice, QueueingSpec, RequestClass, Service, Target, load, parse
from .servers import Heat, Power, ServerGroup, ThrottleStep
from .stations import LEAVE, Station

__all__ = [
    "LEAVE",
    "Answer",
    "Arrivals",
    "Batch",
    "ClosedArrivals",
    "Distribution",
    "Exponential",
    "Fixed",
    "Gamma",
    "Heat",
    "Inference",
    "LedgerCell",
    "Limits",
    "Lognormal",
    "PolicyChoice",
    "Power",
    "QueueingSpec",
    "RequestClass",
    "Samples",
    "ServerGroup",
    "Service",
    "Station",
    "Target",
    "ThrottleStep",
    "TraceArrivals",
    "Uniform",
    "Weibull",
    "load",
    "parse",
]
