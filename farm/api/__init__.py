"""The farm from Python: `from farm import Farm`."""

from .command_line import CommandFailed
from .experiment import Experiment, Page
from .farm import Farm, Inference

__all__ = ["CommandFailed", "Experiment", "Farm", "Inference", "Page"]
