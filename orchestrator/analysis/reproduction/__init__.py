"""Set published figures beside ours, and judge whether their shape is reproduced. Pure.

Devices differ, so no absolute figure is judged: who wins, by which order of ratio, which value of an axis is best, and
where a crossover lies.
"""

from __future__ import annotations

from .figure import figures_of
from .judgement import NOT_COMPARABLE, Beside, Reproduction, Verdict, counted
from .reproduce import reproduce

__all__ = ["NOT_COMPARABLE", "Beside", "Reproduction", "Verdict", "counted", "figures_of", "reproduce"]
