"""Devices as servers: each is held in a session with a resident agent, and answers over a stream."""

from __future__ import annotations

from .resident import Network, Resident, Serving
from .wire import AgentWire

__all__ = ["AgentWire", "Network", "Resident", "Serving"]
