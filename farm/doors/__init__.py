"""The door by which commands reach a farm: the one of this machine, or one elsewhere, by the same acts and answers."""

from .door import Door, experiment_or_job, open_door, unserved

__all__ = ["Door", "experiment_or_job", "open_door", "unserved"]
