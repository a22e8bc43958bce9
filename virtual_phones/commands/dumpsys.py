"""`dumpsys` in the formats of real phones."""

from __future__ import annotations

from virtual_phones.phone import Phone
from virtual_phones.shell.table import Call, CommandError
from virtual_phones.system.processes import private_bytes

from .power_service import idle_controller, power_service
from .table import command

_STATUS = {"Charging": 2, "Discharging": 3, "Not charging": 4, "Full": 5}


@command("dumpsys")
async def dumpsys(call: Call) -> int:
    service, *words = call.arguments or [""]
    phone = call.phone
    if service == "battery":
        text = battery_service(phone, words)
    elif service == "thermalservice" and call.has("dumpsys", service):
        text = thermal_service(phone)
    elif service == "gpu" and call.has("dumpsys", service):
        text = gpu_service(phone)
    elif service == "power":
        text = power_service(phone)
    elif service == "deviceidle":
        text = idle_controller(phone, words)
    elif service in _PLAIN:
        text = _PLAIN[service]
    else:
        await call.io.err(f"Can't find service: {service}\n".encode())
        return 0
    await call.io.out(text.encode())
    return 0


_PLAIN = {
    "display": "DISPLAY MANAGER (dumpsys display)\n  mScreenState=ON\n",
    "meminfo": "Applications Memory Usage (in Kilobytes):\n",
}


def battery_service(phone: Phone, words: list[str]) -> str:
    """State of the battery service. `unplug`, `set NAME VALUE` and `reset` change what it says, never the charging."""
    if words[:1] == ["reset"]:
        phone.battery_override = None
        return ""
    fields = _battery_fields(phone) if phone.battery_override is None else dict(phone.battery_override)
    if words[:1] == ["unplug"]:
        fields |= {"AC powered": "false", "USB powered": "false", "Wireless powered": "false"}
        phone.battery_override = fields
        return ""
    if words[:1] == ["set"] and len(words) >= 3:
        names = {"level": "level", "status": "status", "temp": "temperature", "usb": "USB powered", "ac": "AC powered"}
        if words[1] not in names:
            raise CommandError(f"Unknown set option: {words[1]}")
        value = str(words[2] == "1").lower() if words[1] in ("usb", "ac") else words[2]
        phone.battery_override = fields | {names[words[1]]: value}
        return ""
    stopped = "  (UPDATES STOPPED -- use 'reset' to restart)\n" if phone.battery_override is not None else ""
    return "Current Battery Service state:\n" + stopped + "".join(f"  {k}: {v}\n" for k, v in fields.items())


def _battery_fields(phone: Phone) -> dict[str, str]:
    reading = phone.reading()
    return {
        "AC powered": "false",
        "USB powered": str(phone.body.charging).lower(),
        "Wireless powered": "false",
        "Max charging current": "500000" if phone.body.charging else "0",
        "Max charging voltage": "5000000" if phone.body.charging else "0",
        "Charge counter": str(reading.charge_uah),
        "status": str(_STATUS[reading.status]),
        "health": "2",
        "present": "true",
        "level": str(reading.level),
        "scale": "100",
        "voltage": str(reading.voltage_uv // 1000),
        "temperature": str(reading.temp_dc),
        "technology": "Li-ion",
    }


def thermal_service(phone: Phone) -> str:
    """Thermal status, the stale cached block, and what the HAL measures now."""
    thermal, body = phone.profile.thermal, phone.body
    real = phone.thermal_status
    status = real if phone.thermal_override is None else phone.thermal_override
    lines = [
        f"IsStatusOverride: {str(phone.thermal_override is not None).lower()}",
        "ThermalEventListeners:",
        "\tcallbacks: 0",
        f"Thermal Status: {status}",
        "Cached temperatures:",
        _temperature(phone.first_skin_c, 3, "SKIN", 0),
        f"HAL Ready: {str(thermal.hal_ready).lower()}",
    ]
    if thermal.hal_ready:
        lines += [
            "HAL connection:",
            "\tThermalHAL 2.0 connected: yes",
            "Current temperatures from HAL:",
            _temperature(body.die_c, 0, "CPU", real),
            _temperature(body.die_c, 1, "GPU", real),
            _temperature(body.battery_c, 2, "BATTERY", 0),
            _temperature(body.skin_c, 3, "SKIN", real),
            "Current cooling devices from HAL:",
        ]
    return "\n".join(lines) + "\n"


def _temperature(value_c: float, kind: int, name: str, status: int) -> str:
    return f"\tTemperature{{mValue={value_c:.3f}, mType={kind}, mName={name}, mStatus={status}}}"


def gpu_service(phone: Phone) -> str:
    """Memory of the processes inside. Their drivers keep buffers in the host's memory, so that what a process has for
    itself (RssAnon) stands for what it has on the GPU."""
    sizes = {process.pid: private_bytes(process.pid) for process in phone.table.of(phone.tree.root)}
    rows = [f"Proc {pid} total: {size}" for pid, size in sorted(sizes.items()) if size]
    lines = ["Memory snapshot for GPU 0:", f"Global total: {sum(sizes.values())}", *rows, "", "GpuStats:"]
    return "\n".join([*lines, f"{phone.profile.gpu.name} (virtual)", ""])
