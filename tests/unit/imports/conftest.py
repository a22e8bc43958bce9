"""A command line in an empty folder, and the ledger that it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farm.cli import main
from orchestrator.ledger import Ledger
from orchestrator.system.config import Settings

Farm = Callable[..., tuple[int, str, str]]


@pytest.fixture
def farm(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Farm:
    """Runs a command with a state folder of its own; exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name in ("FARM_STATE", "FARM_REDIS_URL", "FARM_LEDGER_URL", "FARM_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def ledger(farm: Farm) -> Iterator[Ledger]:
    with Ledger(Settings().ledger) as opened:
        yield opened
