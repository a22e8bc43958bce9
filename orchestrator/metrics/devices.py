"""Metrics of devices and hosts, from their last announcements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric, Sample

from orchestrator.energy import battery_draw_a
from orchestrator.model.device import Device, DeviceFacts, DeviceState, Health, Reading
from orchestrator.model.live.announcement import HostAnnouncement, Progress
from orchestrator.model.live.complaints import complaints
from orchestrator.model.power import GaugeCalibration

from .family import gauge

Labels = dict[str, str]
INFO = ("serial", "host", "kind", "source", "model", "manufacturer", "soc", "gpu", "gpu_vendor", "abi", "profile")

STATE: dict[str, tuple[str, Callable[[DeviceState], float | bool | None]]] = {
    "farm_device_battery_ratio": (
        "Charge of the battery, 0 to 1.",
        lambda state: None if state.battery_percent is None else state.battery_percent / 100,
    ),
    "farm_device_battery_temperature_celsius": ("Temperature of the battery.", lambda state: state.battery_temp_c),
    "farm_device_skin_temperature_celsius": ("The warmest skin sensor.", lambda state: state.skin_temp_c),
    "farm_device_charging": ("1 while the battery is being charged.", lambda state: state.charging),
    "farm_device_thermal_status": (
        "Android's thermal status: 0 none, 1 light, 2 moderate, 3 severe ... 6 shutdown.",
        lambda state: state.thermal_status,
    ),
    "farm_device_storage_free_bytes": ("Free space on the device.", lambda state: state.free_storage_bytes),
    "farm_device_left_changed": (
        "Settings that a session has left changed, and nobody has put back yet.",
        lambda state: len(state.left_changed),
    ),
    "farm_device_ready_timestamp_seconds": (
        "When a hot or flat device is predicted to be ready.",
        lambda state: state.ready_at,
    ),
    "farm_device_last_seen_timestamp_seconds": ("When its host last saw the device.", lambda state: state.seen_at),
}
"""Gauges of a device's state; a fact that a device lacks (None) has no sample."""


MOMENT_S = 30.0
"""A reading is one of now for this long: an idle phone is read every 10 s, and its agent samples in a session."""

READING: dict[str, tuple[str, Callable[[Reading, GaugeCalibration | None], float | None]]] = {
    "farm_device_battery_current_amperes": (
        "Current out of the battery now, negative while it is charged.",
        battery_draw_a,
    ),
    "farm_device_battery_voltage_volts": (
        "Voltage of the battery.",
        lambda reading, _: reading.voltage_v,
    ),
    "farm_device_cpu_frequency_hertz": (
        "Clock of the fastest core now.",
        lambda reading, _: reading.cpu_hz,
    ),
    "farm_device_gpu_frequency_hertz": ("Clock of the GPU now.", lambda reading, _: reading.gpu_hz),
    "farm_device_cpu_temperature_celsius": (
        "The warmest processor sensor.",
        lambda reading, _: reading.cpu_temp_c,
    ),
    "farm_device_gpu_temperature_celsius": (
        "The warmest graphics sensor.",
        lambda reading, _: reading.gpu_temp_c,
    ),
}
"""Gauges of a device's momentary reading: its host's while it is idle, its agent's in a session that samples."""


class DeviceFamilies:
    """The families of devices: what each is, whether it can work, how it is; in a session, by its agent's samples."""

    def __init__(self) -> None:
        self._told: list[tuple[DeviceFacts, Health]] = []
        self._standing: list[Metric] = []
        self._labels: dict[str, Labels] = {}

    def of(self, devices: Iterable[Device], sessions: Iterable[Progress] = ()) -> Iterator[Metric]:
        """Yield the families; those of what devices are stay the same objects until one is another: mostly none is."""
        listed = list(devices)
        told = [(device.facts, device.state.health) for device in listed]
        if told != self._told:
            self._told, self._standing = told, list(_standing(listed))
        yield from self._standing
        kept = self._labels
        self._labels = {facts.serial: kept.get(facts.serial) or {"serial": facts.serial} for facts, _ in told}
        states = [(self._labels[device.facts.serial], device.state) for device in listed]
        for name, (text, read) in STATE.items():
            yield _gauge(name, text, ((labels, read(state)) for labels, state in states))
        yield _complaints(states)
        sampled = {session.serial: session.reading for session in sessions if session.reading is not None}
        yield from self._readings(listed, sampled, time.time())

    def _readings(self, devices: Iterable[Device], sampled: Mapping[str, Reading], now: float) -> Iterator[Metric]:
        fresh = [
            (self._labels[device.facts.serial], reading, device.enrolment.gauge if device.enrolment else None)
            for device in devices
            if (reading := sampled.get(device.facts.serial, device.state.reading)) is not None
            and now - reading.at <= MOMENT_S
        ]
        for name, (text, pick) in READING.items():
            yield _gauge(name, text, ((labels, pick(reading, gauge)) for labels, reading, gauge in fresh))


def _complaints(states: Iterable[tuple[Labels, DeviceState]]) -> Metric:
    samples = (((labels["serial"], each.check), 1) for labels, state in states for each in complaints(state))
    text = "1 for each check that finds something wrong with a device."
    return gauge("farm_device_complaint", text, ("serial", "check"), samples)


def _gauge(name: str, text: str, values: Iterable[tuple[Labels, float | bool | None]]) -> Metric:
    """Return a gauge of devices; what is None has no sample. `add_metric` would take three times as long."""
    family = GaugeMetricFamily(name, text, labels=("serial",))
    family.samples = [Sample(name, labels, float(value)) for labels, value in values if value is not None]
    return family


def _standing(devices: Sequence[Device]) -> Iterator[Metric]:
    what = (([str(getattr(device.facts, name)) for name in INFO], 1) for device in devices)
    yield gauge("farm_device_info", "What a device is; always 1.", INFO, what)
    labels = ("serial", "api", "version", "driver", "device_name")
    apis = (
        ((device.serial, facts.api, facts.version, facts.driver, facts.device_name), 1)
        for device in devices
        for facts in device.facts.apis
    )
    yield gauge("farm_device_api_info", "A compute API of a device, with the driver behind it; always 1.", labels, apis)
    healths = (((device.serial, health), device.state.health is health) for device in devices for health in Health)
    text = "1 for the health that a device has now, 0 for the others."
    yield gauge("farm_device_health", text, ("serial", "health"), healths)


def host_families(hosts: Iterable[HostAnnouncement]) -> Iterator[Metric]:
    """Workers that are alive, and what they have in hand."""
    found = list(hosts)

    def of_hosts(name: str, text: str, read: Callable[[HostAnnouncement], float]) -> Metric:
        return gauge(f"farm_host_{name}", text, "host", ((host.host, read(host)) for host in found))

    yield of_hosts("up", "1 for each host that announces itself.", lambda _: 1)
    yield of_hosts("last_seen_timestamp_seconds", "When a host last announced itself.", lambda host: host.seen_at)
    yield of_hosts("running_jobs", "Jobs that a host's worker runs now.", lambda host: len(host.running))
    text = "Records on a host's disk that the ledger does not have yet."
    yield of_hosts("spool_records", text, lambda host: host.spooled)
