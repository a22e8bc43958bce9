"""A command line in an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def farm(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in an empty folder with no farm; exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    for name in ("FARM_STATE", "FARM_REDIS_URL", "FARM_LEDGER_URL", "FARM_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main(list(map(str, arguments)))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
