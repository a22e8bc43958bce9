"""RAPL: energy counters of this host's CPU packages, through the kernel's powercap."""

from __future__ import annotations

from pathlib import Path

from orchestrator.model.errors import Unsupported

from .base import SYS, Readings, text_of
from .polled import Poller, lost

PERIOD_S = 0.05
GAIN_UNCERTAINTY = 0.03


class _Package:
    """One counter in J; it wraps at `max_energy_range_uj`, many seconds apart."""

    def __init__(self, folder: Path) -> None:
        self._node = folder / "energy_uj"
        self.name = f"{text_of(folder / 'name') or 'package'} ({folder.name})"
        self._range_uj = int(text_of(folder / "max_energy_range_uj") or 2**32)
        self._last_uj = self._read_uj()
        self._total_uj = 0

    def energy_j(self) -> float:
        now_uj = self._read_uj()
        step_uj = now_uj - self._last_uj
        self._total_uj += step_uj if step_uj >= 0 else step_uj + self._range_uj
        self._last_uj = now_uj
        return self._total_uj / 1e6

    def _read_uj(self) -> int:
        return int(self._node.read_text())


class RaplMeter:
    """Implements `HostMeter`: the sum of all packages (the parts of a package are inside it)."""

    def __init__(self, sys: Path = SYS) -> None:
        self._folders = package_folders(sys)
        self._poller: Poller | None = None

    def start(self) -> None:
        try:
            packages = [_Package(folder) for folder in self._folders]
        except (OSError, ValueError) as e:
            raise lost(e) from e
        name = ", ".join(package.name for package in packages)
        self._poller = Poller(
            lambda: sum(package.energy_j() for package in packages), PERIOD_S, name, GAIN_UNCERTAINTY, counts=True
        )
        self._poller.start()

    def stop(self) -> tuple[Readings, ...]:
        poller, self._poller = self._poller, None
        return poller.stop() if poller else ()


def package_folders(sys: Path = SYS) -> list[Path]:
    """The packages' own folders. Raises Unsupported where there are none, or they cannot be read."""
    powercap = sys / "class" / "powercap"
    folders = [folder for folder in sorted(powercap.glob("intel-rapl:*")) if folder.name.count(":") == 1]
    packages = [folder for folder in folders if text_of(folder / "name").startswith("package")] or folders
    if not packages:
        raise Unsupported(
            f"this host has no RAPL counters ({powercap}/intel-rapl:*)",
            remedy="they need an Intel or AMD CPU, `modprobe intel_rapl_msr`, and no virtual machine around",
        )
    for folder in packages:
        try:
            (folder / "energy_uj").read_text()
        except PermissionError as e:
            raise Unsupported(
                f"{folder}/energy_uj may be read by root only",
                remedy=f"sudo chmod a+r {powercap}/intel-rapl:*/energy_uj (until the next start; a udev rule keeps it)",
            ) from e
        except OSError as e:
            raise Unsupported(f"{folder}/energy_uj: {e}", remedy="look at the kernel's log") from e
    return packages
