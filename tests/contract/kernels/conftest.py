"""The agent runs what the compiler writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contract.agent.conftest import agent, agent_binary

__all__ = ["agent", "agent_binary"]


@pytest.fixture(scope="session")
def shaders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SPIR-V of this run, compiled here and now, but once in all its processes: tests have many kernels in common."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shaders"
