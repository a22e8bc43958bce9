"""Kernels that run once on small tensors: PoCL compiles them without optimising, in three quarters of the time.

The agent's own tests (tests/contract) run them as users do, optimised.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def compile_quickly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")  # read by pyopencl at each build
        yield
