"""One farm for all tests of this folder: a virtual phone and this workstation. It is killed in the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.farm.test_up import READY_S, Up
from tests.servers import required
from tests.waiting import eventually


@pytest.fixture(scope="package")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    for binary in ("redis-server", "adb"):
        required(binary)
    found = Up(tmp_path_factory.mktemp("one") / "farm", "--virtual", "1")
    try:
        found.wait_until_ready()
        eventually(lambda: {each.facts.source for each in found.ready_devices()} == {"virtual", "workstation"}, READY_S)
        yield found
        found.die()
    finally:
        found.kill()
