"""Policies: which request is next, and who serves it. Pure: they see requests, servers and the time, and answer."""

from __future__ import annotations

from orchestrator.queueing.dispatch.policy import Later, Policy

from .registry import POLICIES, make_policy

__all__ = ["POLICIES", "Later", "Policy", "make_policy"]
