"""The steps of the demo, on a farm of its own in a folder of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from device_agent import build
from farm import endpoints
from farm.access import COMMAND_LINE, site_of, user_by
from farm.following import follow
from farm.processes import Process, last_lines
from orchestrator import acts, spec
from orchestrator.acts import Submission
from orchestrator.answers.fleet import Snapshot
from orchestrator.coordination.inventory import Inventory
from orchestrator.coordination.leases import Leases
from orchestrator.ledger import Ledger
from orchestrator.model.device import Device, Health, Source
from orchestrator.model.errors import SetupError
from orchestrator.system.config import Settings
from orchestrator.system.private_files import make_private

PHONES = ("galaxy_s7", "nexus_6p", "pixel_7", "sd888_hdk")
"""Their gauges have news every 250 ms, or none at all: a slower one takes most of a minute to be calibrated."""
FOLDER = Path(str(resources.files("farm")))
SPEC = FOLDER / "first.yaml"
"""Part of the package: an installation without the checkout has it too."""
ENERGY = FOLDER / "first_energy.yaml"
"""One load that is long enough for an energy; it runs beside the others."""
START_LIMIT_S = 90.0
DEVICES_LIMIT_S = 90.0
GRACE_S = 45.0
"""`farm up` ends its parts one after the other."""


class Demo:
    """One run of the demo; `stop` ends whatever was started, however far it came."""

    def __init__(self, state: Path, phones: Sequence[str] = PHONES) -> None:
        self.state, self.phones = state, phones
        self._up: Process | None = None

    def build_agent(self) -> None:
        """Build this machine's agent where there is none yet: an installation begins without one. Raises SetupError."""
        try:
            if not build.binary().is_file():
                build.build()
        except build.BuildError as e:
            raise SetupError(f"the agent: {e}", remedy="fix that, then: python -m device_agent.build") from e

    def start(self) -> None:
        """Start `farm up` and wait until it is up. Raises SetupError with what it said where it does not come up."""
        log = self.state / "logs" / "up.log"
        try:
            make_private(self.state)
            log.parent.mkdir(exist_ok=True, mode=0o700)
            log.unlink(missing_ok=True)
        except OSError as e:
            raise endpoints.unusable(self.state, e) from e
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FARM_")}
        root = str(FOLDER.parent)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
        profiles = [word for name in self.phones for word in ("--profile", name)]
        command = [sys.executable, "-m", "farm.cli", "up", "--virtual", str(len(self.phones)), *profiles]
        command += ["--state", str(self.state)]
        self._up = Process(command, environment, log, GRACE_S)
        limit = time.monotonic() + START_LIMIT_S
        while endpoints.read(self.state) is None:
            if self._up.poll() is not None or time.monotonic() > limit:
                raise SetupError("the demo's farm did not start:\n  " + "\n  ".join(last_lines(log, 20)))
            time.sleep(0.1)

    def wait_for_devices(self, inventory: Inventory, say: Callable[[str], None]) -> list[Device]:
        """Wait until every virtual phone and the workstation are ready. Raises SetupError naming who is not."""
        limit = time.monotonic() + DEVICES_LIMIT_S
        while True:
            self.check()
            found = inventory.devices()
            ready = [device for device in found if device.state.health is Health.READY]
            virtual = sum(device.facts.kind == "phone" for device in ready)
            own = sum(device.facts.source is Source.WORKSTATION for device in ready)
            if virtual >= len(self.phones) and own >= 1:
                return ready
            if time.monotonic() > limit:
                raise SetupError(_not_ready(found), remedy=f"see {self.state}/logs/worker.log, and `farm doctor`")
            say(f"{virtual} of {len(self.phones)} virtual phones, {own} workstation")
            time.sleep(0.2)

    def submit(self, settings: Settings, ledger: Ledger, devices: Sequence[Device]) -> tuple[Submission, Submission]:
        """Submit the long load, then the first experiment; resume what was interrupted, repeat what is over."""
        site, user = site_of(settings, ledger), user_by(COMMAND_LINE)
        known = {device.serial for device in devices}
        for row in ledger.experiments():
            if not row.finished and not _possible(ledger, row.id, known):
                acts.experiments.cancel(site, user, row.id)  # its phones have got other ports: nobody would ever run it
        energy, first = (acts.submit(site, user, spec.load(each), FOLDER) for each in (ENERGY, SPEC))
        return energy, first

    def follow(
        self,
        ledger: Ledger,
        inventory: Inventory,
        leases: Leases,
        experiment_id: str,
        show: Callable[[Snapshot], None],
    ) -> None:
        """Follow it to its end; raises SetupError where the farm ends first."""

        def look(snapshot: Snapshot) -> None:
            self.check()
            show(snapshot)

        follow(ledger, inventory, leases, experiment_id, look)

    def check(self) -> None:
        """Raises SetupError where the farm has ended."""
        if self._up is None or self._up.poll() is not None:
            lines = last_lines(self.state / "logs" / "up.log", 20)
            raise SetupError("the demo's farm has ended:\n  " + "\n  ".join(lines), remedy="farm doctor")

    def stop(self) -> None:
        """End the farm and wait until it has ended."""
        if self._up is not None:
            self._up.stop()
            self._up.join()
            self._up = None


def _possible(ledger: Ledger, experiment_id: str, serials: set[str]) -> bool:
    """Return whether every open job has a candidate among the devices."""
    waiting = ledger.jobs(experiment_id, ("waiting", "placed", "running"))
    return all(set(job.job.candidates) & serials for job in waiting)


def _not_ready(found: Sequence[Device]) -> str:
    lines = [f"\n  {d.serial}: {d.state.health} {d.state.reason}" for d in found if d.state.health is not Health.READY]
    return f"not every device became ready after {DEVICES_LIMIT_S:.0f} s" + ("".join(lines) or ": none was announced")
