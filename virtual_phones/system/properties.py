"""The properties that `getprop` of a virtual phone prints."""

from __future__ import annotations

import platform

from virtual_phones.profile import Profile

_ABIS = {"x86_64": "x86_64", "aarch64": "arm64-v8a", "armv7l": "armeabi-v7a", "i686": "x86"}


def properties(profile: Profile, serial: str) -> dict[str, str]:
    """Properties of a phone that has just started up."""
    build = f"virtual.{profile.sdk}"
    return {
        "ro.product.name": f"{profile.device}_virtual",
        "ro.product.model": profile.model,
        "ro.product.device": profile.device,
        "ro.product.brand": profile.manufacturer,
        "ro.product.manufacturer": profile.manufacturer,
        "ro.product.cpu.abi": _ABIS.get(platform.machine(), platform.machine()),
        "ro.product.cpu.abilist": _ABIS.get(platform.machine(), platform.machine()),
        "ro.board.platform": profile.platform,
        "ro.hardware": "virtual",
        "ro.soc.model": profile.soc,
        "ro.serialno": serial,
        "ro.build.fingerprint": (
            f"{profile.manufacturer}/{profile.device}_virtual/{profile.device}:{profile.android}/{build}/1"
            f":{profile.source}/pocketfarm"
        ),
        "ro.build.version.release": profile.android,
        "ro.build.version.sdk": str(profile.sdk),
        "ro.build.type": "user",
        "ro.pocketfarm.source": profile.source,
        "ro.pocketfarm.profile": profile.name,
        "ro.pocketfarm.gpu": profile.gpu.name,
        "ro.pocketfarm.gpu_vendor": profile.gpu.vendor,
        "ro.pocketfarm.soc": profile.soc,
        "sys.boot_completed": "1",
        "init.svc.adbd": "running",
        "service.adb.tcp.port": "5555",
    }
