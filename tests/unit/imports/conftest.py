"""A command line in an empty folder, and the ledger that it uses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.ledger import Ledger
from orchestrator.system.config import Settings
from tests.unit.farm.conftest import Run as Farm
from tests.unit.farm.conftest import farm

__all__ = ["Farm", "farm", "ledger"]


@pytest.fixture
def ledger(farm: Farm) -> Iterator[Ledger]:
    with Ledger(Settings().ledger) as opened:
        yield opened
