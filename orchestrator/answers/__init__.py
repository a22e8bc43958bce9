"""Answers that the terminal, `--json` and the exporter share."""

from __future__ import annotations

from .ending import Ending, when_it_ends
from .waiting import Wait, explain, reason_lines, wait_data, why_jobs_wait

__all__ = ["Ending", "Wait", "explain", "reason_lines", "wait_data", "when_it_ends", "why_jobs_wait"]
