"""The agent under test runs in the benchmark, too."""

from tests.contract.agent.conftest import agent_binary

__all__ = ["agent_binary"]
