"""The agent under test: built where it is absent or older than its sources, or the one in POCKETFARM_AGENT."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from device_agent.build import build

from .driver import Agent

APIS = ("opencl", "vulkan", "cpu")


@pytest.fixture(scope="session")
def agent_binary() -> Path:
    if given := os.environ.get("POCKETFARM_AGENT"):
        return Path(given)
    with (Path(tempfile.gettempdir()) / "pocketfarm-agent-build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes build one after the other
        return build()


@pytest.fixture
def agent(agent_binary: Path, tmp_path: Path) -> Iterator[Agent]:
    agent = Agent(agent_binary, tmp_path)
    yield agent
    agent.end()


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)
