"""People act on the farm: one function an act (farm, who, on what -> result), in one transaction with its audit row.

The command line, the pages, the notebook and the keeper of nights call these, and show their results as they are.
"""

from orchestrator.ledger import Actor, Door

from .act import ACTS, Done, Phones, PutBack, Site
from .devices import hold, release, restore
from .experiments import cancel, retry, submit_jobs
from .holding import held
from .hosts import add_host, drain_host, remove_host, resume_host
from .nights import begin_night, schedule_suite, unschedule_suite
from .submission.submit import Submission, submit

__all__ = [
    "ACTS",
    "Actor",
    "Done",
    "Door",
    "Phones",
    "PutBack",
    "Site",
    "Submission",
    "add_host",
    "begin_night",
    "cancel",
    "drain_host",
    "held",
    "hold",
    "release",
    "remove_host",
    "restore",
    "resume_host",
    "retry",
    "schedule_suite",
    "submit",
    "submit_jobs",
    "unschedule_suite",
]
