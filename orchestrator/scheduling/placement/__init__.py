"""Placement: which waiting job goes to which free device now, and why the others wait."""

from .floor import Floor, Policy
from .place import Placement, place

__all__ = ["Floor", "Placement", "Policy", "place"]
