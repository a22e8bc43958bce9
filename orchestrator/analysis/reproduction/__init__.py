"""Set published figures beside ours, and judge whether they are reproduced (`judgement.py` has the rule). Pure."""

from __future__ import annotations

from .figure import figures_of
from .judgement import Verdict
from .reproduce import Beside, Reproduction, reproduce

__all__ = ["Beside", "Reproduction", "Verdict", "figures_of", "reproduce"]
