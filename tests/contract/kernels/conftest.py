"""The agent runs what the compiler writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.agent.conftest import agent, agent_binary

__all__ = ["agent", "agent_binary"]


@pytest.fixture(scope="package", autouse=True)
def compile_quickly() -> Iterator[None]:
    """Lavapipe leaves out LLVM's optimisations, a quarter of what it takes for a kernel that is new."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GALLIVM_PERF", "nopt")
        yield


@pytest.fixture(scope="session")
def shaders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SPIR-V of this run, compiled here and now, but once in all its processes: tests have many kernels in common."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shaders"
