"""Policies of placement: in which order jobs come, and which of the free devices they prefer. Pure functions, one small
module each, chosen by `FARM_POLICY` or by an experiment's `placement.policy`."""

from .ageing import Ageing
from .cool_devices import Coolest
from .deadline import Deadline
from .fair_share import FairShare, PlacementPolicy
from .full_batteries import MostCharged
from .longest_first import LongestFirst

POLICIES: dict[str, PlacementPolicy] = {
    "fair_share": FairShare(),
    "ageing": Ageing(),
    "deadline": Deadline(),
    "longest_first": LongestFirst(),
    "coolest": Coolest(),
    "most_charged": MostCharged(),
}

__all__ = ["POLICIES", "FairShare", "PlacementPolicy"]
