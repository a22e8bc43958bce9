"""Use a farm from another machine: `Farm("https://farm.lab:8421", token=...)`."""

from .farm import Experiment, Farm
from .line import Answer, Line, Refused

__all__ = ["Answer", "Experiment", "Farm", "Line", "Refused"]
