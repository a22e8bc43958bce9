"""Kernels that run once on small tensors: PoCL 3 compiles them without optimising, in three quarters of the time.

PoCL 6 does so at no gain, and now and then to a binary that is wrong or crashes: the same source, the same process,
another answer. The agent's own tests (tests/contract) run them as users do, optimised.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyopencl
import pytest


@pytest.fixture(scope="session", autouse=True)
def compile_quickly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if any("PoCL 3." in platform.version for platform in pyopencl.get_platforms()):
            patch.setenv("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")  # read by pyopencl at each build
        yield
