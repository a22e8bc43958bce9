"""The charts of a report: each takes summaries, blocks or records and gives an SVG, or None where it has nothing."""

from .energy import energy
from .latency import distribution, latency
from .limits import limits
from .margins import margins
from .over_axis import over_axis
from .power import power
from .reconstructions import reconstructions
from .resources import layers, memory, setup
from .run import drift
from .sustained import drawn_devices, throttling
from .training import training
