"""Put experiments that are over into a file, make room for what it holds, and take it in again."""

from __future__ import annotations

from .adopt import Adopted, adopt
from .archive import Archived, archive, over_since
from .prune import Plan, plan, prune

__all__ = ["Adopted", "Archived", "Plan", "adopt", "archive", "over_since", "plan", "prune"]
