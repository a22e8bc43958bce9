"""The nodes of processors' and graphics' clocks, and what root may write to them."""

from __future__ import annotations

import errno
import os
import re

from virtual_phones.profile import Profile

from .clocks import GOVERNORS, Clocks, policies

CPU = "/sys/devices/system/cpu"
GPU_FOLDER = {"adreno": "/sys/class/kgsl/kgsl-3d0", "mali": "/sys/class/misc/mali0/device"}
_BUSY = 0.05
"""Load from which the clocks rise."""
_LIMIT = re.compile(rf"{CPU}/cpufreq/policy(\d+)/scaling_(min_freq|max_freq|governor)")
_GPU_LIMIT = re.compile(rf"({'|'.join(GPU_FOLDER.values())})/(?:devfreq/|scaling_)(min|max)_freq")


def static_clocks(profile: Profile) -> dict[str, str]:
    """Nodes that never change."""
    cores = f"0-{profile.cores - 1}"
    nodes = {f"{CPU}/{name}": cores for name in ("possible", "present", "online")}
    for first, cluster in policies(profile):
        policy = f"{CPU}/cpufreq/policy{first}"
        nodes[f"{policy}/cpuinfo_min_freq"] = str(cluster.min_khz)
        nodes[f"{policy}/cpuinfo_max_freq"] = str(cluster.max_khz)
        nodes[f"{policy}/scaling_available_governors"] = " ".join(GOVERNORS)
        nodes[f"{policy}/related_cpus"] = " ".join(str(first + core) for core in range(cluster.cores))
    return nodes | _static_gpu(profile)


def dynamic_clocks(profile: Profile, clocks: Clocks, heat: float, load: float) -> dict[str, str]:
    """Limits and clocks now, where heat leaves a share of `heat` of the highest clocks."""
    nodes = {}
    for first, _ in policies(profile):
        policy, limits = f"{CPU}/cpufreq/policy{first}", clocks.cpu(first, heat)
        nodes[f"{policy}/scaling_governor"] = clocks.governors[first]
        nodes[f"{policy}/scaling_min_freq"] = str(limits.low)
        nodes[f"{policy}/scaling_max_freq"] = str(limits.high)
        nodes[f"{policy}/scaling_cur_freq"] = str(limits.busy if load > _BUSY else min(limits.low, limits.busy))
    return nodes | _dynamic_gpu(profile, clocks, heat, load)


def links(profile: Profile) -> dict[str, str]:
    """Symbolic links and their targets: as in the kernel, a core's cpufreq folder is its cluster's policy."""
    return {
        f"{CPU}/cpu{core}/cpufreq": f"../cpufreq/policy{first}"
        for first, cluster in policies(profile)
        for core in range(first, first + cluster.cores)
    }


def write_clock(clocks: Clocks, path: str, text: str) -> bool:
    """Root writes to a node; whether it is one of the clocks'. Raises OSError(EINVAL) for what it does not take."""
    if found := _LIMIT.fullmatch(path):
        first, name = int(found[1]), found[2]
        if name == "governor":
            clocks.govern(first, text.strip())
        else:
            clocks.limit_cpu(first, **{"low" if name == "min_freq" else "high": _number(text)})
        return True
    if found := _GPU_LIMIT.fullmatch(path):
        clocks.limit_gpu(**{"low" if found[2] == "min" else "high": _number(text)})
        return True
    return False


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from error


def _static_gpu(profile: Profile) -> dict[str, str]:
    folder = GPU_FOLDER[profile.gpu.vendor]
    frequencies = " ".join(str(clock) for clock in profile.gpu.clocks_hz)
    if profile.gpu.vendor == "mali":
        return {f"{folder}/available_frequencies": frequencies, f"{folder}/gpuinfo": profile.gpu.name}
    return {
        f"{folder}/gpu_model": profile.gpu.name.replace(" (TM) ", ""),
        f"{folder}/devfreq/available_frequencies": frequencies,
    }


def _dynamic_gpu(profile: Profile, clocks: Clocks, heat: float, load: float) -> dict[str, str]:
    folder, limits = GPU_FOLDER[profile.gpu.vendor], clocks.gpu(heat)
    clock = limits.busy if load > _BUSY else min(limits.low, limits.busy)
    percent = round(100 * load)
    if profile.gpu.vendor == "mali":
        return {
            f"{folder}/cur_freq": str(clock),
            f"{folder}/scaling_min_freq": str(limits.low),
            f"{folder}/scaling_max_freq": str(limits.high),
            f"{folder}/utilization": str(percent),
        }
    return {
        f"{folder}/gpuclk": str(clock),
        f"{folder}/gpu_busy_percentage": f"{percent} %",
        f"{folder}/gpubusy": f"{percent * 10_000:7d} {1_000_000 if percent else 0:7d}",
        f"{folder}/devfreq/cur_freq": str(clock),
        f"{folder}/devfreq/min_freq": str(limits.low),
        f"{folder}/devfreq/max_freq": str(limits.high),
    }
