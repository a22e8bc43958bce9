"""Every file of experiments/ that test_studies does not run, made small, through a real farm of virtual phones."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from farm.cli import main
from farm.endpoints import settings_for
from tests.integration.workers.jobs import BUSY, begun, enrolled
from tests.servers import required
from tests.waiting import eventually

from .conftest import Cli
from .small import small
from .test_studies import STUDIES
from .test_up import ROOT, Up

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]

FILES = [file for file in sorted((ROOT / "experiments").glob("*.yaml")) if file.stem not in STUDIES]
FAN = "thermal: {skin_ambient_w_per_k: 5}"
"""Keeps a phone cool that computes for long because the machine has other work: nothing waits for it to cool down."""
QUICK = f"""
extends: galaxy_s24
name: quick
gauge: {{refresh_ms: 250, unit: uA, quantum_ua: 1000, noise_ua: 3000}}
{FAN}
"""
"""Its gauge is known from the start: a farm calibrates that of test_studies."""
NO_GAUGE = f"""
extends: sd888_hdk
name: no_gauge
{FAN}
"""
PHONES = {"quick": QUICK, "no_gauge": NO_GAUGE}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two phones that meet what the files ask for: Adreno, 3 GiB, Vulkan, airplane mode."""
    for binary in ("redis-server", "adb"):
        required(binary)
    folder = tmp_path_factory.mktemp("files")
    profiles = [folder / f"{name}.yaml" for name in PHONES]
    for profile in profiles:
        profile.write_text(PHONES[profile.stem])
    found = Up(folder / "farm", "--virtual", "2", *(word for each in profiles for word in ("--profile", str(each))))
    try:
        found.wait_until_ready()
        eventually(lambda: sum(each.facts.source == "virtual" for each in found.ready_devices()) == 2)
        (quick,) = (each for each in found.ready_devices() if each.facts.profile == "quick")
        enrolled(settings_for(found.state), quick)
        yield found
    finally:
        found.kill()


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
