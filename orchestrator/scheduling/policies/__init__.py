"""Policies of placement: in which order jobs come, and which of the free devices they prefer. Pure functions,
chosen by `FARM_POLICY` or by the experiment (`placement.policy`)."""

from .fair_share import FairShare, PlacementPolicy
from .levels import Ageing, Deadline, LongestFirst
from .preferences import Coolest, LeastEnergy, MostCharged, SameDevice

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
