"""One farm for all tests of this folder: two virtual phones, one that replays, and engines that the tests bring."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farm.endpoints import settings_for
from tests.integration.farm.test_up import ROOT, Up
from tests.integration.workers.jobs import enrolled
from tests.servers import required
from tests.waiting import eventually

from .authors_phone import recording

DATA = ROOT.parent / "shared" / "data" / "mobile_convnet" / "galaxy_s7"
"""Study S's measurements on their own phone. Where they are not, there is no phone that replays them."""
OWN = ROOT / "tests" / "own_engines"
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


@pytest.fixture(scope="package")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two phones that meet what the files of experiments/ ask for: Adreno, 3 GiB, Vulkan, airplane mode."""
    for binary in ("redis-server", "adb"):
        required(binary)
    folder = tmp_path_factory.mktemp("two")
    profiles = [folder / f"{name}.yaml" for name in PHONES]
    for profile in profiles:
        profile.write_text(PHONES[profile.stem])
    played = [f"replay:{recording(DATA, folder / 'galaxy_s7.json')}"] * DATA.is_dir()
    count = len(profiles) + len(played)
    options = ["--virtual", str(count), *(word for each in (*profiles, *played) for word in ("--profile", str(each)))]
    found = Up(folder / "farm", *options, FARM_ENGINES=str(OWN))
    try:
        found.wait_until_ready()
        eventually(lambda: sum(each.facts.kind == "phone" for each in found.ready_devices()) == count)
        for each in found.ready_devices():
            if each.facts.profile == "quick" or each.facts.source == "replay":  # what it plays back has no load steps
                enrolled(settings_for(found.state), each)
        yield found
    finally:
        found.kill()
