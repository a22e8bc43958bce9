"""A night on three virtual phones that replay latencies, with a slow-down of 8 % on one of them.

The latencies are made up, with the noise of a phone: so that the night is the same on any machine, however busy it is.
The farm is not told of the slow-down; it lies in the phone, and holds for one of the two builds.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from device_agent import build
from farm.access import COMMAND_LINE, site_of, user_by
from farm.tasks.nightly import keeper_of
from orchestrator.ledger import Ledger
from orchestrator.nightly import Night, load
from orchestrator.system.config import Settings
from orchestrator.system.private_files import make_private
from virtual_phones.faults import SlowBuild
from virtual_phones.launch import read_phones

from .session import FOLDER, Demo

PHONES = {"galaxy_s7": 21.0, "pixel_7": 9.0, "sd888_hdk": 6.0}
"""Profile -> milliseconds of an inference, made up."""
SLOW = "replay-pixel_7-0"
SLOWER = 0.08
FILES = ("two_builds.yaml", "one_network.yaml")
NOISE, ALIKE = 0.015, 0.9
"""Standard deviation of an inference, a share; and correlation of neighbours: blocks differ by about 1 %."""
INFERENCES = 4001
LOOK_S = 0.5


class NightDemo(Demo):
    """One run of it."""

    def __init__(self, state: Path) -> None:
        self._folder = (state / "two_builds").absolute()
        super().__init__(state, [f"replay:{self._folder / name}.json" for name in PHONES])

    def prepare(self) -> Path:
        """A folder with what the phones replay, the suite with its experiment, and a build of the agent with other
        bytes that does the same; the suite's file."""
        make_private(self._folder)
        for name in FILES:
            shutil.copy(FOLDER / "demo" / name, self._folder / name)
        for profile, latency_ms in PHONES.items():
            (self._folder / f"{profile}.json").write_text(json.dumps(_recording(profile, latency_ms)))
        usual = build.binary()
        self._next_build = self._folder / "builds" / "next" / usual.parent.name / usual.name
        self._next_build.parent.mkdir(parents=True, exist_ok=True)
        self._next_build.write_bytes(usual.read_bytes() + b"the next build")
        return self._folder / FILES[0]

    def slow_down(self) -> None:
        """Let the next build take 8 % longer on one phone."""
        phones = read_phones(self.state / "virtual")
        sha256 = hashlib.sha256(self._next_build.read_bytes()).hexdigest()
        phones.control.fault(SLOW, SlowBuild(build=sha256, share=1 / (1 + SLOWER)))

    def begin(self, settings: Settings, ledger: Ledger, suite: Path) -> Night:
        """Begin the night; the farm does the rest."""
        now = time.time()
        keeper = keeper_of(site_of(settings, ledger), user_by(COMMAND_LINE))
        return keeper.begin(load(suite), suite, now, now, scheduled=False)

    def follow_night(self, ledger: Ledger, night_id: str, show: Callable[[Night], None]) -> Night:
        """The night when it is over. Raises SetupError where the farm ends first."""
        while True:
            self.check()
            night = Night.model_validate_json(ledger.nights.one(night_id).body)
            show(night)
            if night.ended_at is not None:
                return night
            time.sleep(LOOK_S)


def is_found(night: Night) -> bool:
    """Return whether the slow phone alone is told as worse, and was found twice."""
    worse = {row.compared.device for row in night.rows if row.compared.verdict == "different" and row.confirmed}
    return night.outcome == "complete" and worse == {SLOW}


def _recording(profile: str, latency_ms: float) -> dict[str, object]:
    chance, level = Random(profile), 0.0
    latencies = []
    for _ in range(INFERENCES):
        level = ALIKE * level + (1 - ALIKE**2) ** 0.5 * chance.gauss(0.0, NOISE)
        latencies.append(round(latency_ms * (1 + level), 4))
    power = {"time_s": [0, 1], "power_w": [2.5, 2.5]}
    networks = {"cifar10_quick": {"latency_ms": latencies, "power": power}}
    return {"profile": profile, "origin": "made up for a demonstration", "goes_on": True, "networks": networks}
