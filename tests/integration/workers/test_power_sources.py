"""Sources on a virtual phone behind a real adb server: its model against its truth, its clock against this host's."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.model.power import PowerSource
from orchestrator.model.wiring import WiredDevice
from orchestrator.system.config import Settings
from workers.devices.admit import enrol_phone
from workers.devices.fleet import Member
from workers.enrolment.burn import burn
from workers.power import sources_for
from workers.power.clock_mapping import ask_round_trips, clock_of, fit
from workers.session.session import session

from .conftest import Wiring


@pytest.fixture
def member(lab: Wiring, lab_settings: Settings) -> Member:
    known = lab_settings.state / "virtual" / "phones.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"control": str(lab.phones.control.path)}))
    return enrol_phone(lab.connection, lab_settings)[0]


def test_the_model_is_the_truth_and_says_so(member: Member, lab: Wiring, lab_settings: Settings) -> None:
    """The energy between its first and its last reading, over load and rest, is what the phone counts itself."""
    source = sources_for(member, lab_settings, WiredDevice(), PowerSource.MODEL)
    before = lab.phones.control.truth(lab.serial)
    source.start()
    with session(member, None, lab_settings.state, lambda: None):  # which keeps it awake
        burn(member, (0, 2), 1500, lambda: None)
    (series,) = source.stop()
    after = lab.phones.control.truth(lab.serial)
    assert series.source == PowerSource.MODEL and "MODEL" in series.name
    steps = [(t1 - t0) / 1e9 * p for (t0, _), (t1, p) in pairwise(zip(series.t_ns, series.power_w, strict=True))]
    missed_s = (after.t_ns - before.t_ns - series.t_ns[-1] + series.t_ns[0]) / 1e9
    idle_w = min(series.power_w)
    assert sum(steps) + missed_s * idle_w == pytest.approx(after.consumed_j - before.consumed_j, rel=0.05)
    assert max(series.power_w) > 3 * idle_w, "the load shows"


def test_the_phones_clock_is_this_hosts(member: Member) -> None:
    """A virtual phone's agent tells this host's CLOCK_BOOTTIME: the map must find it within its own residual."""
    ask = clock_of(member.connection, member.agent)
    before, after = ask_round_trips(ask), ask_round_trips(ask)
    found = fit(before, after)
    truth_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    first, last = (min(trips, key=lambda trip: trip.half_ns) for trips in (before, after))
    assert found.residual_ns == max(first.half_ns, last.half_ns) and found.round_trips == 40
    for host_ns in (first.middle_ns, (first.middle_ns + last.middle_ns) // 2, last.middle_ns):
        assert abs(found.to_device(host_ns) - host_ns - truth_ns) <= found.residual_ns + 1_000_000


def test_a_csv_meter_measures_a_phone(member: Member, lab_settings: Settings, tmp_path: Path) -> None:
    """Through the wiring file's options, on the phone's clock."""
    from tests.contract.power.signal import MOST_W, CsvWriter, boot_ahead_s, energy_j, power_w, repeated, stalls

    path = tmp_path / "meter.csv"
    writer = CsvWriter(path, "s,W\n", lambda t: f"{t:.6f},{power_w(t):.5f}")
    wired = WiredDevice(meter={"csv": {"path": str(path), "time": "s", "power": "W"}})
    with repeated(writer, 0.01), stalls() as stalled_s:
        source = sources_for(member, lab_settings, wired, "auto")
        source.start()
        time.sleep(1.0)
        (series,) = source.stop()
    shift_s = boot_ahead_s()
    steps = [(t1 - t0) / 1e9 * p for (t0, _), (t1, p) in pairwise(zip(series.t_ns, series.power_w, strict=True))]
    first_s, last_s = (t / 1e9 - shift_s for t in (series.t_ns[0], series.t_ns[-1]))
    truth_j, lost_j = energy_j(last_s) - energy_j(first_s), MOST_W * stalled_s()
    assert sum(steps) == pytest.approx(truth_j, rel=None, abs=0.1 * truth_j + lost_j)
    assert series.clock is not None and series.clock.round_trips == 40
