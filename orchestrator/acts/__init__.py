"""People act on the farm: one function an act (farm, who, on what -> result), in one transaction with its audit row.

The command line, the pages, the notebook and the keeper of nights call these, and show their results as they are.
"""

from orchestrator.model.people import Door
from orchestrator.model.rights import Actor

from . import by_hand, describing, devices, engines, experiments, hosts, nights, reserving
from .access import groups, links, passwords, people, projects, sign_on, tokens, webhooks
from .act import ACTS, ON_PAGES, RIGHTS, Act, Done, DoneBefore, Phones, PutBack, Site
from .holding import held
from .submission import importing
from .submission.submit import Submission, submit

__all__ = [
    "ACTS", "ON_PAGES", "RIGHTS", "Act", "Actor", "Done", "DoneBefore", "Door", "Phones", "PutBack", "Site",
    "Submission", "by_hand", "describing", "devices", "engines", "experiments", "groups", "held", "hosts",
    "importing", "links", "nights", "passwords", "people", "projects", "reserving", "sign_on", "submit", "tokens",
    "webhooks",
]  # fmt: skip
