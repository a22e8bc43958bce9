"""Every file of experiments/ that test_studies does not run, made small, through a real farm of virtual phones."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from farm.cli import main
from tests.integration.farm.conftest import Cli
from tests.integration.farm.one_phone.test_studies import STUDIES
from tests.integration.farm.test_up import ROOT, Up
from tests.integration.workers.jobs import BUSY, begun

from .small import small

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

FILES = [file for file in sorted((ROOT / "experiments").glob("*.yaml")) if file.stem not in STUDIES]


@pytest.fixture(scope="module")
def submitted(up: Up) -> dict[str, str]:
    """Every file's experiment, all submitted at once: the farm shares its devices out among them."""
    found = {}
    for file in FILES:
        with redirect_stdout(io.StringIO()) as said:
            status = main(["run", str(small(file, up.state)), "--yes", "--state", str(up.state), "--json"])
        assert status == 0, f"{file.name}: {said.getvalue()}"
        found[file.name] = json.loads(said.getvalue())["experiment"]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_file_gives_results(up: Up, submitted: dict[str, str], cli: Cli, file: Path) -> None:
    """Every job ends in a record with right outputs and all that the file asks for.

    It does not promise that a block counts: other work on this machine may make each of them `invalid` (BUSY), and the
    farm measures none of those again. Nothing else may end a block.
    """
    experiment = submitted[file.name]
    ended = json.loads(cli("watch", experiment, "--state", str(up.state), "--json")[1])
    data = json.loads(cli("results", experiment, "--json", "--raw", "--state", str(up.state))[1])
    records = begun(data["records"])
    told = cli("status", experiment, "--state", str(up.state))[1]
    assert records and len({record["job_id"] for record in records}) == sum(ended["outcomes"].values()), told
    others = [record for record in records if record["outcome"] != "ok"]
    assert all(record["outcome"] == "invalid" and record["cause"] in BUSY for record in others), told
    asked = data["spec"]["measure"]["quantities"]
    for record in records:
        assert record["samples"] and all(sample["duration_ns"] > 0 for sample in record["samples"])
        if record.get("trained"):  # the device's own answers on what was held out
            assert (
                record["trained"]["evaluated"] > 0 and 0 <= record["trained"]["wrong"] <= record["trained"]["evaluated"]
            )
        else:
            assert record["checks"] and all(check["ok"] for check in record["checks"])
        assert record["memory"] or "memory" not in asked
        assert record["layers"] or "layers" not in asked or record.get("role") == "canary"
    assert any(record["power"] for record in records) == ("power" in asked)
