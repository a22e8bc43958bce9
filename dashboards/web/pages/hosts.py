"""The machines of the farm."""

from __future__ import annotations

from collections import Counter

from dashboards.web.page import Asked, Page
from orchestrator.model.device import Health


def hosts(asked: Asked) -> Page:
    look = asked.look()
    devices = Counter(lane.device.facts.host for lane in look.lanes)
    well = Counter(lane.device.facts.host for lane in look.lanes if lane.device.state.health is Health.READY)
    data = {"hosts": [(host, devices[host.name], well[host.name]) for host in look.hosts]}
    return Page("hosts.html.j2", "Hosts", "hosts", data)
