"""The model of an experiment file: workload, matrix, devices, sampling, conditions, quantities."""

from .affinity import Affinity
from .conditions import NEEDS, SETTLED_C, SETTLED_C_PER_MIN, Conditions, Range
from .dataset import MOST_SHARDS, Dataset
from .experiment import DeviceChoice, Experiment, Name, why_taken
from .matrix import Matrix
from .measure import Measure, Quantity
from .placement_rules import PlacementRules, PolicyName
from .published import Finding, Place, Published, PublishedTable
from .sampling import LEAST_BLOCKS, MOST_SAMPLES, SETUP_S, SUSTAINED_MARGIN, Sampling
from .sides import BASELINE, CANDIDATE, Side, SideName, Sides
from .strategy import LimitSearch, StrategyChoice
from .study import Study, StudyTable
from .training import Training, TrainingSet
from .workload import Workload
