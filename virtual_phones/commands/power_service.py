"""The power service and the idle controller: `cmd power`, `dumpsys power`, power keys, `dumpsys deviceidle`."""

from __future__ import annotations

import time

from virtual_phones.phone import Phone
from virtual_phones.shell.releases import USES
from virtual_phones.shell.table import CommandError

NEVER_SDK = 1_000
_FIXED = "set-fixed-performance-mode-enabled"
_NO_HAL = (
    "Failed to set FIXED_PERFORMANCE mode\nThis is likely because Power HAL AIDL is not implemented on this device"
)


_KEYS = {"26": "POWER", "223": "SLEEP", "224": "WAKEUP"}


def press(phone: Phone, key: str) -> None:
    """A key by its name or number. Keys that are not the power service's do nothing."""
    phone.advance()
    match _KEYS.get(key, key.removeprefix("KEYCODE_")):
        case "POWER":
            phone.wakefulness.press_power(time.monotonic())
        case "SLEEP":
            phone.wakefulness.sleep()
        case "WAKEUP":
            phone.wakefulness.wake(time.monotonic())


def power_service(phone: Phone) -> str:
    """`dumpsys power`, the lines that tell whether it is awake."""
    phone.advance_screen(time.monotonic())
    return (
        "POWER MANAGER (dumpsys power)\n\nPower Manager State:\n"
        f"  mWakefulness={'Awake' if phone.wakefulness.is_awake else 'Asleep'}\n"
        f"  mIsPowered={str(phone.supply.powered).lower()}\n"
        f"  mStayOn={str(phone.stays_on).lower()}\n"
        f"  mStayOnWhilePluggedInSetting={phone.settings['global'].get('stay_on_while_plugged_in', '0')}\n"
        "  mUserActivityTimeoutOverrideFromWindowManager=-1\n\n"
        f"Screen off timeout: {phone.off_after_ms} ms\n\n"
        "Wake Locks: size=0\n"
    )


def power_command(phone: Phone, words: list[str]) -> None:
    """`cmd power`. Raises CommandError with what a phone says where it cannot do it."""
    verb, value = [*words, "", ""][:2]
    if phone.profile.sdk < USES["cmd"].get(f"power+{verb}", NEVER_SDK):
        raise CommandError(f"Unknown command: {verb}", 255, bare=True)
    if verb == _FIXED:
        _fix(phone, value)
    elif value in ("0", "1"):
        phone.settings["global"]["low_power"] = value
        phone.save()


def _fix(phone: Phone, value: str) -> None:
    if not value:
        raise CommandError(f'Argument expected after "{_FIXED}"', 255)
    share = phone.profile.fixed_performance
    if share is None:
        raise CommandError(_NO_HAL, 255, bare=True)
    phone.clocks.fixed = share if value.lower() == "true" else None
    phone.show()


def idle_controller(phone: Phone, words: list[str]) -> str:
    """`dumpsys deviceidle [enabled|enable|disable|force-idle|unforce|get] [deep|light|all]`."""
    verb, which = [*words, "", ""][:2]
    kinds = [which] if which in ("deep", "light") else ["deep", "light"]
    match verb:
        case "enable" | "disable":
            (phone.doze.update if verb == "enable" else phone.doze.difference_update)(kinds)
            return "".join(f"{kind.capitalize()} idle mode {verb}d\n" for kind in kinds)
        case "enabled":
            return f"{int(all(kind in phone.doze for kind in kinds))}\n"
        case "force-idle":
            phone.is_dozing = bool(phone.doze & set(kinds))
            return "Now forced in to deep idle mode\n" if phone.is_dozing else "Unable to go deep idle; not enabled\n"
        case "unforce":
            phone.is_dozing = False
            return "Light state: ACTIVE, deep state: ACTIVE\n"
        case "get":
            return "IDLE\n" if phone.is_dozing else "ACTIVE\n"
        case "":
            light, deep = (str(kind in phone.doze).lower() for kind in ("light", "deep"))
            state = "IDLE" if phone.is_dozing else "ACTIVE"
            return f"  mLightEnabled={light}  mDeepEnabled={deep}\n  mState={state} mLightState={state}\n"
    raise CommandError(f"Unknown option: {verb}", bare=True)
