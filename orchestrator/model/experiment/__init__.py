"""What a person asks: workload x axes x devices, how often, under which conditions, measuring what."""

from .affinity import Affinity
from .conditions import SETTLED_C, SETTLED_C_PER_MIN, Conditions, Range
from .dataset import MOST_SHARDS, Dataset
from .experiment import DeviceChoice, Experiment, Name
from .matrix import Matrix
from .measure import Measure, Quantity
from .published import Published
from .sampling import SETUP_S, SUSTAINED_MARGIN, Sampling
from .workload import Workload

__all__ = [
    "MOST_SHARDS",
    "SETTLED_C",
    "SETTLED_C_PER_MIN",
    "SETUP_S",
    "SUSTAINED_MARGIN",
    "Affinity",
    "Conditions",
    "Dataset",
    "DeviceChoice",
    "Experiment",
    "Matrix",
    "Measure",
    "Name",
    "Published",
    "Quantity",
    "Range",
    "Sampling",
    "Workload",
]
