"""Policies of placement: in which order jobs come, and which of the free devices they prefer. Pure functions, one small
module each, chosen by `FARM_POLICY` or by the experiment (`placement.policy`)."""

from .ageing import Ageing
from .cool_devices import Coolest
from .deadline import Deadline
from .fair_share import FairShare, PlacementPolicy
from .full_batteries import MostCharged
from .least_energy import LeastEnergy
from .longest_first import LongestFirst
from .same_device import SameDevice

POLICIES: dict[str, PlacementPolicy] = {
    "fair_share": FairShare(),
    "ageing": Ageing(),
    "coolest": Coolest(),
    "most_charged": MostCharged(),
    "least_energy": LeastEnergy(),
    "deadline": Deadline(),
    "same_device": SameDevice(),
    "longest_first": LongestFirst(),
}

__all__ = ["POLICIES", "FairShare", "PlacementPolicy"]
