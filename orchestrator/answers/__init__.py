"""Answers that the terminal, `--json`, the exporter and the pages share."""

from __future__ import annotations

from .ending import Ending, when_it_ends
from .standing import Problem, Standing, all_in_brief, how_far, problems_of
from .story import Story, story_of
from .waiting import Wait, explain, reason_lines, wait_data, why_jobs_wait

__all__ = [
    "Ending", "Problem", "Standing", "Story", "Wait", "all_in_brief", "explain", "how_far", "problems_of",
    "reason_lines", "story_of", "wait_data", "when_it_ends", "why_jobs_wait",
]  # fmt: skip
