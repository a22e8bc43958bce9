"""Answers about the farm that more than one place shows: the terminal, `--json` and the exporter give the same ones."""

from __future__ import annotations

from .waiting import Wait, explain, reason_lines, wait_data, why_jobs_wait

__all__ = ["Wait", "explain", "reason_lines", "wait_data", "why_jobs_wait"]
