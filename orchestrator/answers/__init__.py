"""Answers that the terminal, `--json` and the exporter share."""

from __future__ import annotations

from .waiting import Wait, explain, reason_lines, wait_data, why_jobs_wait

__all__ = ["Wait", "explain", "reason_lines", "wait_data", "why_jobs_wait"]
