"""The spec of a queueing experiment: one YAML file, validated."""

from .answers import Answer
from .arrivals import Arrivals, ClosedArrivals, TraceArrivals
from .distributions import Distribution, Exponential, Fixed, Gamma, LedgerCell, Lognormal, Samples, Uniform, Weibull
from .inference import Inference
from .queueing import Batch, Limits, PolicyChoice, QueueingSpec, RequestClass, Service, Target, load, parse
from .servers import Heat, Power, ServerGroup, ThrottleStep
from .stations import LEAVE, Station
