"""Panels that several dashboards show."""

from __future__ import annotations

from . import limits
from .panel import Panel

RESULT = "{{experiment}} {{serial}} {{network}} {{backend}} {{precision}} {{options}}"
DEVICE = "{{serial}} {{model}}"


def of_devices(family: str) -> str:
    """Return the query of a family's values of the chosen devices, with their host, model and source."""
    chosen = 'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
    return f"{family} * on (serial) group_left (host, model, source) {chosen}"


def one_stat(family: str, stat: str) -> str:
    """A statistic of a family as a column of a table, whose rows are joined where all labels agree: without `stat`."""
    return f'max without (stat) ({family}{{source="$source", stat="{stat}"}})'


def of_results(family: str = "", **labels: str) -> str:
    """Return the query of what is chosen in a family of results; without one in all, named by the label `quantity`."""
    own = "".join(f', {name}="{value}"' for name, value in labels.items())
    chosen = 'source="$source", serial=~"$serial", network=~"$network", experiment=~"$experiment"' + own
    every = f'label_join({{__name__=~"farm_results_.+", {chosen}}}, "quantity", "", "__name__")'
    return f"farm_results_{family}{{{chosen}}}" if family else every


def _number_of_devices(found: str) -> str:
    return f'sum({found} * on (serial) group_left (host) farm_device_info{{source="$source"}}) or vector(0)'


ALERTS = Panel(
    "table", "Alerts", "What Prometheus raises now; each rule says what to do (dashboards/alerts.yml).",
    {'ALERTS{alertstate=~"pending|firing"}': ""}, nothing="none",
)  # fmt: skip
BATTERY = Panel(
    "lines", "Battery", "Charge of the battery. The line is that of the alert DeviceFlat.",
    {of_devices("farm_device_battery_ratio"): DEVICE},
    unit="percentunit", least=0, most=1, limits=limits.below(limits.BATTERY_RATIO),
)  # fmt: skip
BATTERY_TEMPERATURE = Panel(
    "lines", "Battery temperature", "Temperature of the battery. The line is that of the alert DeviceHot.",
    {of_devices("farm_device_battery_temperature_celsius"): DEVICE},
    unit="celsius", limits=limits.above(limits.BATTERY_CELSIUS),
)  # fmt: skip
DEVICES_NOT_USABLE = Panel(
    "number", "Devices not usable", "Offline, unauthorized or sick; `farm devices` says why.",
    {_number_of_devices('farm_device_health{health=~"offline|unauthorized|sick"}'): "__auto"},
    limits=(("green", None), ("orange", 1)),
)  # fmt: skip
READY = '(farm_device_health{health="ready"} unless on (serial) farm_device_quarantined_timestamp_seconds)'
DEVICES_READY = Panel(
    "number", "Devices ready", "Devices that can be given work now; those in quarantine do not count.",
    {_number_of_devices(READY): "__auto"}, limits=(("red", None), ("green", 1)),
)  # fmt: skip
HEALTH = Panel(
    "states", "Health", "Ready is 1.", {of_devices('farm_device_health{health="ready"}'): DEVICE},
    words={"0": ("not ready", "orange"), "1": ("ready", "green")},
)  # fmt: skip
QUARANTINED = 'farm_device_quarantined_timestamp_seconds unless on (serial) farm_device_info{source!="$source"}'
IN_QUARANTINE = Panel(
    "number", "In quarantine", "Devices that lost several attempts in a row.",
    {f"count({QUARANTINED}) or vector(0)": "__auto"}, limits=(("green", None), ("orange", 1)),
)  # fmt: skip
JOBS_WAITING = Panel(
    "number", "Jobs waiting", "Jobs that are not placed yet.", {'sum(farm_jobs{state="waiting"})': "__auto"},
    limits=(("blue", None),),
)  # fmt: skip
LEASED = Panel(
    "states", "Leased", "Whether a device has a lease, so that a session may work on it.",
    {of_devices("clamp_max(farm_lease_expires_timestamp_seconds, 1)"): DEVICE}, words={"1": ("leased", "blue")},
)  # fmt: skip
OLDEST_JOB_WAITS_FOR = Panel(
    "number", "Oldest job waits for", "Time since the submission of the oldest job that waits.",
    {"time() - farm_jobs_oldest_waiting_timestamp_seconds": "__auto"},
    unit="s", nothing="none", limits=(("green", None), ("orange", 86400)),
)  # fmt: skip
PARTS_THAT_ANSWER = Panel(
    "number", "Parts that answer", "Redis and ledger, as the exporter sees them.", {"sum(farm_up)": "__auto"},
    limits=(("red", None), ("green", 2)),
)  # fmt: skip
TEMPERATURES = Panel(
    "lines", "Temperatures", "The warmest sensor of the skin, and of an idle phone those of its processor and GPU.",
    {
        of_devices("farm_device_skin_temperature_celsius"): f"skin {DEVICE}",
        of_devices("farm_device_cpu_temperature_celsius"): f"CPU {DEVICE}",
        of_devices("farm_device_gpu_temperature_celsius"): f"GPU {DEVICE}",
    },
    unit="celsius",
)  # fmt: skip
THERMAL_STATUS = Panel(
    "lines", "Thermal status",
    "Android's thermal status: 0 none ... 6 shutdown. The line is that of the alert DeviceHot.",
    {of_devices("farm_device_thermal_status"): DEVICE},
    least=0, most=6, decimals=0, limits=limits.above(limits.THERMAL_STATUS),
)  # fmt: skip
