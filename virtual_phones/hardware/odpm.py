"""The on-device power monitor: IIO devices that count the energy of rails, as Pixel phones have since the sixth."""

from __future__ import annotations

from virtual_phones.profile import Odpm

FOLDER = "/sys/bus/iio/devices"


def static_rails(monitors: tuple[Odpm, ...]) -> dict[str, str]:
    """Nodes that never change."""
    return {f"{FOLDER}/iio:device{monitor.index}/name": monitor.name for monitor in monitors}


def rail_energies_uws(monitors: tuple[Odpm, ...], consumed_j: float) -> dict[str, int]:
    """Energy of every rail in uW s, where the phone has consumed so many joules."""
    return {rail: int(share * consumed_j * 1e6) for monitor in monitors for rail, share in monitor.rails.items()}


def energy_rails(monitors: tuple[Odpm, ...], consumed_j: float, since_boot_ms: int) -> dict[str, str]:
    """`energy_value` of each monitor: uW s of each rail since boot, on CLOCK_BOOTTIME."""
    energies = rail_energies_uws(monitors, consumed_j)
    return {
        f"{FOLDER}/iio:device{monitor.index}/energy_value": "\n".join(
            [
                f"t={since_boot_ms}",
                *(
                    f"CH{channel}(T={since_boot_ms})[{rail}], {energies[rail]}"
                    for channel, rail in enumerate(monitor.rails)
                ),
            ]
        )
        for monitor in monitors
    }


def rail_nodes(monitors: tuple[Odpm, ...]) -> tuple[str, ...]:
    """Nodes that are closed to the shell user where the monitor is `denied`."""
    return tuple(f"{FOLDER}/iio:device{monitor.index}/energy_value" for monitor in monitors if monitor.denied)
