"""Panels that several dashboards show."""

from __future__ import annotations

from . import limits
from .panel import Panel


def one_stat(family: str, stat: str) -> str:
    """A statistic of a family as a column of a table, whose rows are joined where all labels agree: without `stat`."""
    return f'max without (stat) ({family}{{source="$source", stat="{stat}"}})'


RESULT = "{{experiment}} {{serial}} {{network}} {{backend}} {{precision}} {{options}}"


def of_results(family: str, **labels: str) -> str:
    """Return the query of what is chosen in a family of results."""
    own = "".join(f', {name}="{value}"' for name, value in labels.items())
    chosen = 'source="$source", serial=~"$serial", network=~"$network", experiment=~"$experiment"'
    return f"farm_results_{family}{{{chosen}{own}}}"


ALERTS = Panel(
    "table",
    "Alerts",
    "What Prometheus raises now; each rule says what to do (dashboards/alerts.yml).",
    (('ALERTS{alertstate=~"pending|firing"}', ""),),
    nothing="none",
)
BATTERY = Panel(
    "lines",
    "Battery",
    "Charge of the battery. The line is that of the alert DeviceFlat.",
    (
        (
            (
                "farm_device_battery_ratio * on (serial) group_left (host, model, source) "
                'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "{{serial}} {{model}}",
        ),
    ),
    unit="percentunit",
    least=0,
    most=1,
    limits=limits.below(limits.BATTERY_RATIO),
)
BATTERY_TEMPERATURE = Panel(
    "lines",
    "Battery temperature",
    "Temperature of the battery. The line is that of the alert DeviceHot.",
    (
        (
            (
                "farm_device_battery_temperature_celsius * on (serial) group_left (host, model, "
                'source) farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "{{serial}} {{model}}",
        ),
    ),
    unit="celsius",
    limits=limits.above(limits.BATTERY_CELSIUS),
)
DEVICES_NOT_USABLE = Panel(
    "number",
    "Devices not usable",
    "Offline, unauthorized or sick; `farm devices` says why.",
    (
        (
            (
                'sum(farm_device_health{health=~"offline|unauthorized|sick"} * on (serial) group_left'
                ' (host) farm_device_info{source="$source"}) or vector(0)'
            ),
            "__auto",
        ),
    ),
    limits=(("green", None), ("orange", 1)),
)
DEVICES_READY = Panel(
    "number",
    "Devices ready",
    "Devices that can be given work now; those in quarantine do not count.",
    (
        (
            (
                'sum((farm_device_health{health="ready"} unless on (serial) '
                "farm_device_quarantined_timestamp_seconds) * on (serial) group_left (host) "
                'farm_device_info{source="$source"}) or vector(0)'
            ),
            "__auto",
        ),
    ),
    limits=(("red", None), ("green", 1)),
)
HEALTH = Panel(
    "states",
    "Health",
    "Ready is 1.",
    (
        (
            (
                'farm_device_health{health="ready"} * on (serial) group_left (host, model, source) '
                'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "{{serial}} {{model}}",
        ),
    ),
    words={"0": ("not ready", "orange"), "1": ("ready", "green")},
)
IN_QUARANTINE = Panel(
    "number",
    "In quarantine",
    "Devices that lost several attempts in a row.",
    (
        (
            (
                "count(farm_device_quarantined_timestamp_seconds unless on (serial) "
                'farm_device_info{source!="$source"}) or vector(0)'
            ),
            "__auto",
        ),
    ),
    limits=(("green", None), ("orange", 1)),
)
JOBS_WAITING = Panel(
    "number",
    "Jobs waiting",
    "Jobs that are not placed yet.",
    (('sum(farm_jobs{state="waiting"})', "__auto"),),
    limits=(("blue", None),),
)
LEASED = Panel(
    "states",
    "Leased",
    "Whether a device has a lease, so that a session may work on it.",
    (
        (
            (
                "clamp_max(farm_lease_expires_timestamp_seconds, 1) * on (serial) group_left (host, "
                'model, source) farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "{{serial}} {{model}}",
        ),
    ),
    words={"1": ("leased", "blue")},
)
OLDEST_JOB_WAITS_FOR = Panel(
    "number",
    "Oldest job waits for",
    "Time since the submission of the oldest job that waits.",
    (("time() - farm_jobs_oldest_waiting_timestamp_seconds", "__auto"),),
    unit="s",
    nothing="none",
    limits=(("green", None), ("orange", 86400)),
)
PARTS_THAT_ANSWER = Panel(
    "number",
    "Parts that answer",
    "Redis and ledger, as the exporter sees them.",
    (("sum(farm_up)", "__auto"),),
    limits=(("red", None), ("green", 2)),
)
TEMPERATURES = Panel(
    "lines",
    "Temperatures",
    "The warmest sensor of the skin, and of an idle phone those of its processor and GPU.",
    (
        (
            (
                "farm_device_skin_temperature_celsius * on (serial) group_left (host, model, source) "
                'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "skin {{serial}} {{model}}",
        ),
        (
            (
                "farm_device_cpu_temperature_celsius * on (serial) group_left (host, model, source) "
                'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "CPU {{serial}} {{model}}",
        ),
        (
            (
                "farm_device_gpu_temperature_celsius * on (serial) group_left (host, model, source) "
                'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "GPU {{serial}} {{model}}",
        ),
    ),
    unit="celsius",
)
THERMAL_STATUS = Panel(
    "lines",
    "Thermal status",
    ("Android's thermal status: 0 none ... 6 shutdown. The line is that of the alert DeviceHot."),
    (
        (
            (
                "farm_device_thermal_status * on (serial) group_left (host, model, source) "
                'farm_device_info{host=~"$host", serial=~"$serial", source="$source"}'
            ),
            "{{serial}} {{model}}",
        ),
    ),
    least=0,
    most=6,
    decimals=0,
    limits=limits.above(limits.THERMAL_STATUS),
)
