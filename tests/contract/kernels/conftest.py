"""The agent runs what the compiler writes."""

from tests.contract.agent.conftest import agent, agent_binary

__all__ = ["agent", "agent_binary"]
