"""Device profiles of virtual phones: what is found at first sight, and gauges calibrated by load steps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.model.enrolment import Enrolment
from orchestrator.model.power import PowerSource
from orchestrator.system.config import Settings
from tests import phones as mending
from tests.phones import start_phones
from tests.servers import private_adb_server, required
from tests.waiting import eventually
from virtual_phones.faults import Charging
from virtual_phones.launch import VirtualPhones
from virtual_phones.profile import load_profile
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Member
from workers.enrolment import enrol, ensure_calibrated, first_sight, store
from workers.power.perfetto import Perfetto
from workers.session.session import session

from .conftest import Wiring

pytestmark = pytest.mark.long
SPEED = 2.0
"""The slow phones' gauges are so many times faster than real ones: their calibration takes a minute otherwise. News
that are closer together would be told by how late a busy machine lets a phone be."""


def _go_on() -> None: ...


def _must_not_measure() -> None:
    raise AssertionError("it began to measure")


@pytest.fixture
def member(lab: Wiring, lab_settings: Settings) -> Iterator[Member]:
    """The lab's phone in a session, as whoever enrols holds one."""
    member = enrol_phone(lab.connection, lab_settings)[0]
    with session(member, None, lab_settings.state, _go_on):
        yield member


@pytest.fixture(scope="module")
def quick_phones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[VirtualPhones, AdbServer]]:
    """A gauge of the inverted sign, one that counts milliamperes, and one that the shell may not read."""
    folder = tmp_path_factory.mktemp("quick")
    with (
        private_adb_server(folder) as adb,
        start_phones(folder / "phones", ["nexus_5", "galaxy_s24", "sd888_hdk"], speed=SPEED) as phones,
    ):
        server = AdbServer(adb.port, required("adb"))
        for phone in phones.phones:
            mending.connect(server, phone.serial)
        yield phones, server


def check_gauge(found: Enrolment, profile_name: str, speed: float = 1.0) -> None:
    """The profile of the phone tells what its gauge is."""
    profile = load_profile(profile_name)
    assert found.gauge is not None, found.gauge_reason
    assert found.gauge.ampere_per_unit == (1e-3 if profile.gauge.unit == "mA" else 1e-6)
    assert found.gauge.discharging_sign == profile.gauge.discharging_sign
    # Another gauge's would be twice or half as long. How near it comes to regular news, tests/unit shows: a busy host
    # is late with them.
    assert found.gauge.refresh_ns == pytest.approx(profile.gauge.refresh_ms * 1e6 / speed, rel=0.45)
    # Some ten readings tell it: how near they come, tests/unit shows. By chance they are their steps alone.
    least_a = profile.gauge.quantum_ua * 1e-6 / math.sqrt(12)
    assert 0.99 * least_a <= found.gauge.noise_a < 5.0 * max(profile.gauge.noise_ua * 1e-6, least_a)
    assert not found.gauge.absolute


def test_a_galaxy_s7_on_a_charger_that_can_be_cut_is_calibrated(
    member: Member, lab: Wiring, lab_settings: Settings
) -> None:
    """The charger is cut for the steps, as beside a farm with virtual phones, whose control socket lies in the state
    folder. `test_other_signs_and_units` has phones without a charger."""
    known = lab_settings.state / "virtual" / "phones.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"control": str(lab.phones.control.path)}))
    lab.phones.control.fault(lab.serial, Charging(on=True))
    said: list[float] = []
    try:
        found = enrol(member, lab_settings, _go_on, lambda _, share: said.append(share))
        assert lab.phones.control.truth(lab.serial).charging, "it charges again"
        assert not list((lab_settings.state / "supply").glob("*.json")), "and nothing is left to be put back"
    finally:
        lab.phones.control.clear()
        lab.phones.control.fault(lab.serial, Charging(on=False))
    check_gauge(found, "galaxy_s7")
    assert found.supply == "virtual"
    assert found.sampler is not None and found.sampler.cpu_share < 0.05
    assert said == sorted(said) and (said[0], said[-1]) == (0.0, 1.0)
    assert store.load(lab_settings.state, member.facts.serial, member.facts.fingerprint) == found
    again = enrol(member, lab_settings, _go_on, quick=True)
    assert (again.version, again.gauge, again.sampler) == (2, found.gauge, found.sampler), "a quick look keeps it"


@pytest.mark.parametrize(("index", "name"), [(0, "nexus_5"), (1, "galaxy_s24")])
def test_other_signs_and_units(
    quick_phones: tuple[VirtualPhones, AdbServer], settings: Settings, index: int, name: str
) -> None:
    phones, server = quick_phones
    phone = phones.phones[index]
    quick = settings.model_copy(update={"adb_port": server.port})
    member, _ = enrol_phone(AdbConnection(phone.serial, server, serial=phone.name), quick)
    with session(member, None, quick.state, _go_on):
        check_gauge(ensure_calibrated(member, quick, _go_on), name, SPEED)
        known = store.load(quick.state, member.facts.serial, member.facts.fingerprint)
        assert ensure_calibrated(member, quick, _go_on) == known, "it is known now: nothing is measured again"


def test_a_gauge_that_is_closed_costs_no_load_steps(
    quick_phones: tuple[VirtualPhones, AdbServer], settings: Settings
) -> None:
    phones, server = quick_phones
    phone = phones.phones[2]
    quick = settings.model_copy(update={"adb_port": server.port})
    member, _ = enrol_phone(AdbConnection(phone.serial, server, serial=phone.name), quick)
    said: list[str] = []
    found = ensure_calibrated(member, quick, _go_on, lambda what, _: said.append(what))
    assert not found.calibrated and "Permission denied" in found.gauge_reason and "external meter" in found.gauge_reason
    assert said == ["nodes and permissions", "cost of the sampler", "done"]


def test_what_a_first_look_finds(member: Member, lab_settings: Settings) -> None:
    found = first_sight(member, lab_settings)
    nodes = {node.path: node for node in found.nodes}
    assert nodes["/sys/class/power_supply/battery/current_now"].value.lstrip("-").isdigit()
    assert nodes["/sys/class/kgsl/kgsl-3d0/gpuclk"].error == "Permission denied"
    assert not any("mali" in path for path in nodes), "what no phone of its kind has is left out"
    assert found.permissions["write_settings"] and not found.permissions["root"]
    usable = {fact.source: fact.usable for fact in found.sources}
    assert usable[PowerSource.GAUGE] and not usable[PowerSource.ODPM] and not usable[PowerSource.METER]
    assert not found.calibrated and "farm enrol" in found.gauge_reason
    assert first_sight(member, lab_settings) == found, "once is enough"


def test_power_rails_are_read_by_perfetto_where_their_nodes_are_closed(lab: Wiring, lab_settings: Settings) -> None:
    pixel = lab.phones.phones[1]
    mending.connect(lab.server, pixel.serial)
    member, _ = enrol_phone(AdbConnection(pixel.serial, lab.server, serial=pixel.name), lab_settings)
    found = first_sight(member, lab_settings)
    usable = {fact.source: fact.usable for fact in found.sources}
    assert found.permissions["perfetto"] and usable[PowerSource.PERFETTO] and not usable[PowerSource.ODPM]
    meter = Perfetto(member.connection)
    meter.start()
    begun = lab.phones.control.truth(pixel.name)
    eventually(lambda: lab.phones.control.truth(pixel.name).t_ns - begun.t_ns > 5e8)
    series = {each.name: each for each in meter.stop()}
    assert "S2S_VDD_G3D" in series and all(power >= 0 for each in series.values() for power in each.power_w)


def test_a_charging_phone_says_what_to_do(member: Member, lab: Wiring, lab_settings: Settings) -> None:
    lab.phones.control.fault(lab.serial, Charging(on=True))
    found = ensure_calibrated(member, lab_settings, _must_not_measure)
    assert not found.calibrated
    assert "not discharging" in found.gauge_reason and "cut the supply" in found.gauge_reason
    lab.phones.control.clear()
    lab.phones.control.fault(lab.serial, Charging(on=False))


def test_the_lab_file_says_what_is_wired(member: Member, lab_settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "meter.csv").write_text("watts\n")
    lab_settings.state.mkdir(parents=True, exist_ok=True)
    (lab_settings.state / "wiring.yaml").write_text(
        f"devices:\n  {member.facts.serial}:\n    reference_temp: 23.5 C\n"
        f"    meter: {{csv: {{path: {tmp_path / 'meter.csv'}, power: watts}}}}\n"
    )
    found = first_sight(member, lab_settings)
    assert found.reference_temp_c == 23.5
    assert next(fact for fact in found.sources if fact.source == PowerSource.METER).usable
