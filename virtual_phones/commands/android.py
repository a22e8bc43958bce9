"""Android's own commands: settings, cmd, svc, am, pm, wm, input, reboot, and the rest that is accepted silently."""

from __future__ import annotations

import asyncio

from virtual_phones.phone import Phone
from virtual_phones.programs.streams import Io
from virtual_phones.shell.releases import USES
from virtual_phones.shell.table import Call, CommandError

from .power_service import power_command, press
from .table import command

_AS_COMMAND = {"settings": "settings", "package": "pm", "activity": "am"}
_SILENT = ("statusbar", "notification", "stats", "content")


@command("settings")
async def settings(call: Call) -> int:
    words = call.arguments[2:] if call.arguments[:1] == ["--user"] else call.arguments
    if len(words) < 2 or words[1] not in call.phone.settings:
        raise CommandError("usage: settings get|put|delete|list global|system|secure [NAME [VALUE]]", 255)
    verb, space, *rest = words
    values = call.phone.settings[space]
    if verb == "list":
        await call.io.out("".join(f"{name}={value}\n" for name, value in sorted(values.items())).encode())
    elif verb == "get" and rest:
        await call.io.out(f"{values.get(rest[0], 'null')}\n".encode())
    elif verb == "put" and len(rest) >= 2:
        values[rest[0]] = rest[1]
        call.phone.save()
    elif verb == "delete" and rest:
        await call.io.out(f"Deleted {int(values.pop(rest[0], None) is not None)} rows\n".encode())
        call.phone.save()
    else:
        raise CommandError(f"bad arguments: {' '.join(call.arguments)}", 255)
    return 0


@command("cmd")
async def cmd(call: Call) -> int:
    service, *words = call.arguments or [""]
    phone = call.phone
    if service == "connectivity" and words[:1] == ["airplane-mode"] and call.has("cmd", "connectivity+airplane-mode"):
        return await _airplane_mode(phone, words[1:], call.io)
    if service == "thermalservice" and call.has("dumpsys", service):
        return _thermal_service(phone, words)
    if service == "battery" and words:
        return await call.shell.call(["dumpsys", "battery", *words], call.io)
    if service == "power":
        power_command(phone, words)
        return 0
    if service == "deviceidle":
        return await call.shell.call(["dumpsys", "deviceidle", *words], call.io)
    if service in _AS_COMMAND:
        return await call.shell.call([_AS_COMMAND[service], *words], call.io)
    if service in _SILENT:
        return 0
    await call.io.err(f"cmd: Can't find service: {service}\n".encode())
    return 20


async def _airplane_mode(phone: Phone, words: list[str], io: Io) -> int:
    if not words:
        await io.out(b"disabled\n" if phone.radios_on else b"enabled\n")
        return 0
    if words[0] not in ("enable", "disable"):
        raise CommandError(f"airplane-mode {words[0]}: enable or disable", 255)
    phone.radios_on = words[0] == "disable"
    phone.settings["global"]["airplane_mode_on"] = str(int(not phone.radios_on))
    phone.save()
    return 0


def _thermal_service(phone: Phone, words: list[str]) -> int:
    """`override-status N` changes what is reported, not the heat: throttling goes on."""
    if words[:1] == ["override-status"] and len(words) == 2 and words[1].isdigit() and int(words[1]) <= 6:
        phone.thermal_override = int(words[1])
        return 0
    if words[:1] == ["reset"]:
        phone.thermal_override = None
        return 0
    raise CommandError("thermalservice: override-status 0..6 or reset", 255)


@command("input")
async def enter(call: Call) -> int:
    """Keys that switch the screen; there is nothing else to touch."""
    words = [word for word in call.arguments if not word.startswith("-")]
    if words[:1] == ["keyevent"]:
        for key in words[1:]:
            press(call.phone, key)
    return 0


@command("svc")
async def svc(call: Call) -> int:
    """`bluetooth` is a setting; other services have no radio to switch."""
    if call.arguments[:1] == ["bluetooth"] and call.has("svc", "bluetooth"):
        verbs = {"enable": "1", "disable": "0"}
        if len(call.arguments) != 2 or call.arguments[1] not in verbs:
            raise CommandError("usage: svc bluetooth [enable|disable]", 255)
        call.phone.settings["global"]["bluetooth_on"] = verbs[call.arguments[1]]
        call.phone.save()
    elif call.arguments[:1] in ([], ["help"], ["bluetooth"]):
        names = [name for name in USES["svc"] if call.has("svc", name)]
        await call.io.err("".join(["Available commands:\n", *(f"    {name}\n" for name in names)]).encode())
    return 0


@command("wm", "appops", "device_config", "monkey", "media", "ime")
async def accept(_call: Call) -> int:
    """There are no apps, no screen and no radio on a virtual phone: nothing to do."""
    return 0


@command("reboot")
async def reboot(call: Call) -> int:
    call.phone.reboot_requested.set()
    await asyncio.sleep(3600)  # as on a phone, the connection goes before the command returns
    return 0
