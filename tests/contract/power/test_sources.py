"""Every source of power figures against a known signal: mean power, energy, times, labels, and a clean end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from orchestrator.energy import block_energy, why_no_energy
from orchestrator.model.device import Source
from orchestrator.model.enrolment import SourceFact
from orchestrator.model.errors import FarmError, Unsupported
from orchestrator.model.power import PowerSeries, PowerSource, Scope
from orchestrator.model.record import Record
from tests.unit.energy.blocks import load_between, readings, record
from tests.waiting import eventually
from workers.engines.powered import read_meter
from workers.power import Bench, ReadingLost, choose_source, find_sources
from workers.power.csv_file import _why, csv_file
from workers.power.gauge import Gauge

from . import signal
from .rigs import RIGS, Rig, Workbench, csv_of_a_slow_meter, monsoon, workbench

pytestmark = pytest.mark.long

WINDOW_S = 1.3
"""A window that is not a multiple of the signal's period: a mean over the wrong one shows."""
LATE_S = 0.06
"""A shift that must show."""
SHORT_S = 0.9
BRIEF_S = 0.3
LITTLE_S = 0.025
ENDS_S = 0.2
"""Seconds that a source may leave out at the ends of a window."""
TRIES = 3


class Measured(NamedTuple):
    rig: Rig
    series: PowerSeries
    begin_s: float
    """The beginning on the device's clock."""
    end_s: float
    lost_s: float
    """The time that this machine kept source or test from running: what the signal did then, no source can tell."""

    def check_energy(self) -> None:
        truth = truth_j(self.rig, self.series)
        first_s, *_, last_s = host_times_s(self.series)
        lost_j = signal.MOST_W * (self.lost_s + self.rig.unsure_s(first_s) + self.rig.unsure_s(last_s))
        assert energy_j(self.series) == pytest.approx(truth, rel=None, abs=self.rig.tolerance * truth + lost_j)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    with workbench(tmp_path) as made:
        yield made


@pytest.fixture(scope="module", params=RIGS, ids=lambda make: make.__name__)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    """One measurement of each source, looked at by several tests."""
    with workbench(tmp_path_factory.mktemp("rig")) as made:
        yield measure(request.param(made), WINDOW_S)


@pytest.fixture(params=RIGS, ids=lambda make: make.__name__)
def rig(request: pytest.FixtureRequest, bench: Workbench) -> Rig:
    make: Callable[[Workbench], Rig] = request.param
    return make(bench)


def boottime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def measure(rig: Rig, window_s: float = SHORT_S) -> Measured:
    """The series of the signal, of the try in which this machine stalled least: what writes a meter's file beside the
    test, too, whose stalls at the ends of the window show in the series alone."""
    tries: list[Measured] = []

    def worth(each: Measured) -> tuple[bool, float]:
        return span_s(each.series) < window_s - ENDS_S, each.lost_s

    while len(tries) < TRIES and not any(worth(each) < (False, LITTLE_S) for each in tries):
        begin_s = boottime_s()
        with signal.stalls() as stalled_s:
            rig.source.start()
            time.sleep(window_s)
            found = rig.source.stop(rig.events())
        assert found
        series = max(found, key=lambda series: sum(series.power_w))  # another rail is smaller
        tries.append(Measured(rig, series, begin_s, boottime_s(), stalled_s() + holes_s(series)))
    return min(tries, key=worth)


def span_s(series: PowerSeries) -> float:
    """Return the time from the first reading to the last."""
    return (series.t_ns[-1] - series.t_ns[0]) / 1e9


def holes_s(series: PowerSeries) -> float:
    """All pauses between two readings that are none of the source's own."""
    steps = [(b - a) / 1e9 for a, b in pairwise(series.t_ns)]
    usual = 1.5 * median(steps)
    return sum(step - usual for step in steps if step > usual)


def energy_j(series: PowerSeries) -> float:
    """Return the energy from the first reading to the last: steps of means, or trapezoids."""
    pairs = list(pairwise(zip(series.t_ns, series.power_w, strict=True)))
    return sum((t1 - t0) / 1e9 * (p1 if series.is_mean else (p0 + p1) / 2) for (t0, p0), (t1, p1) in pairs)


def host_times_s(series: PowerSeries) -> list[float]:
    """Return the readings' times by this host's CLOCK_MONOTONIC."""
    shift_s = signal.boot_ahead_s()
    return [t_ns / 1e9 - shift_s for t_ns in series.t_ns]


def truth_j(rig: Rig, series: PowerSeries) -> float:
    """Return the signal's energy; of a held power that of faultless readings at the same times."""
    seen_s = [rig.seen_s(host_s) for host_s in host_times_s(series)]
    if rig.held:
        return energy_j(series.model_copy(update={"power_w": tuple(map(signal.power_w, seen_s))}))
    return signal.energy_j(seen_s[-1]) - signal.energy_j(seen_s[0])


def test_energy(measured: Measured) -> None:
    series = measured.series
    assert span_s(series) > WINDOW_S - ENDS_S - measured.lost_s
    measured.check_energy()


def test_times_are_the_devices_and_rise(measured: Measured) -> None:
    """Readings follow the signal in time: shifted by 60 ms, they would fit it better."""
    series, rig = measured.series, measured.rig
    assert all(a < b for a, b in pairwise(series.t_ns))
    assert measured.begin_s - 0.1 < series.t_ns[0] / 1e9 and series.t_ns[-1] / 1e9 < measured.end_s + 0.1
    shift_s = signal.boot_ahead_s()

    def expected(late_s: float) -> Iterator[float]:
        """Yield what a source so late would have told of what was really there, however late its writer was."""
        for (t0, a), (t1, b) in pairwise((t / 1e9, rig.seen_s(t / 1e9 - shift_s - late_s)) for t in series.t_ns):
            if rig.gathered:
                yield (signal.energy_j(b) - signal.energy_j(a)) / (b - a) if b > a else signal.power_w(b)
            elif series.is_mean:
                yield (signal.energy_j(b) - signal.energy_j(a)) / (t1 - t0)
            else:
                yield signal.power_w(b)

    def error(late_s: float) -> float:
        """Return the sum of absolute errors in J: two readings a moment apart count for that moment alone."""
        found = zip(pairwise(series.t_ns), series.power_w[1:], expected(late_s), strict=True)
        return sum((t1 - t0) / 1e9 * abs(told - true) for (t0, t1), told, true in found)

    assert error(0.0) < min(error(-LATE_S), error(LATE_S))
    if series.clock is not None:
        assert 0 <= series.clock.residual_ns / 1e9 < 0.05 + measured.lost_s


def test_labels(measured: Measured) -> None:
    series, rig = measured.series, measured.rig
    assert (series.source, series.scope) == (rig.source.fact.source, rig.scope)
    assert rig.source.fact.usable and series.name
    assert (series.gain_uncertainty > 0) == rig.gain


def test_momentary_readings_are_no_means(bench: Workbench) -> None:
    assert not measure(csv_of_a_slow_meter(bench)).series.is_mean
    assert measure(monsoon(bench)).series.is_mean, "of the samples of 10 ms each"


def test_ends_cleanly(rig: Rig) -> None:
    assert rig.source.stop() == (), "before any start"
    rig.source.start()
    time.sleep(BRIEF_S)
    rig.source.stop(rig.events())
    assert rig.source.stop() == (), "a second time"
    assert rig.handles() == 0
    measure(rig).check_energy()
    assert rig.handles() == 0


def test_a_failure_on_the_way_is_told_and_frees_the_meter(rig: Rig) -> None:
    if rig.breaks is None:
        pytest.skip("the agent's events cannot break on the host")
    rig.source.start()
    time.sleep(BRIEF_S)
    rig.breaks()
    eventually(lambda: not any(thread.name.startswith("meter") for thread in threading.enumerate()))
    with pytest.raises(FarmError) as told:
        rig.source.stop(rig.events())
    assert str(told.value) and rig.handles() == 0
    assert rig.source.stop() == ()
    rig.mends()
    measure(rig).check_energy()


def test_the_gauge_is_the_agents(bench: Workbench) -> None:
    source = choose_source(Bench(bench.member()), "auto")
    assert isinstance(source, Gauge)
    source.start()
    assert source.stop() == ()


def test_what_is_missing_is_named(bench: Workbench) -> None:
    facts = {fact.source: fact for fact in find_sources(Bench(bench.member(), {"monsoon": {}}))}
    assert not any(fact.usable for fact in facts.values()), "a phone without anything"
    assert "pip install 'pocketfarm[monsoon]'" in facts[PowerSource.METER].reason
    for fact in facts.values():
        assert len(fact.reason) > 20, fact


@pytest.mark.parametrize(
    ("meter", "words"),
    [
        ({"monsoon": {"seriall": 1}}, "seriall"),
        ({"csv": {"path": "nowhere.csv", "power": "W"}}, "start the program"),
        ({"csv": {"path": "x.csv"}}, "name the column"),
        ({"ppk2": {}}, "voltage"),
        ({"multimeter": {}}, "multimeter"),
        ({"iio": {"device": "nobody"}}, "nobody"),
    ],
)
def test_a_wrong_lab_file_is_explained(bench: Workbench, meter: dict[str, dict[str, object]], words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        choose_source(Bench(bench.member(), meter), PowerSource.METER)
    with pytest.raises(Unsupported, match=words):
        choose_source(Bench(bench.member(), meter), "auto")


def test_rapl_says_which_permission_to_give(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.node("class/powercap/intel-rapl:0/name", "package-0")
    node = bench.node("class/powercap/intel-rapl:0/energy_uj", "1")
    host = Bench(bench.member("workstation", gpu_vendor="cpu"), sys=bench.folder / "sys")
    read = Path.read_text

    def refused(path: Path, *args: object) -> str:  # root may read everything: permissions cannot be taken from it
        if path == node:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(Unsupported, match="sudo chmod a\\+r"):
        choose_source(host, PowerSource.RAPL)


def test_a_model_is_of_virtual_phones_only(bench: Workbench) -> None:
    with pytest.raises(Unsupported, match="virtual"):
        choose_source(Bench(bench.member(source=Source.PHONE)), PowerSource.MODEL)


def test_a_trace_cannot_be_measured_with(bench: Workbench) -> None:
    with pytest.raises(Unsupported, match="trace"):
        choose_source(Bench(bench.member()), PowerSource.TRACE)


def test_a_line_whose_time_goes_back_is_named(tmp_path: Path, seed: int) -> None:
    draw, path = random.Random(seed), tmp_path / "meter.csv"
    path.write_text("t,p\n")
    meter = csv_file({"path": str(path), "time": "t", "power": "p"})
    meter.start()
    place = draw.randint(1, 300)
    times = [*range(place), place - 1 - draw.uniform(0.01, place), *range(place, place + draw.randint(1, 30))]
    with path.open("a") as file:
        file.write("".join(f"{time_s},1.2\n" for time_s in times))
    eventually(lambda: not meter.is_reading)
    with pytest.raises(ReadingLost, match=rf"meter\.csv, line {place + 2}: the meter's time goes back by"):
        meter.stop()


NO_READINGS = ("nan", "NaN", "inf", "-inf", "N/A", "[N/A]", "", "--", "1,25", "p", "0x12", "1.2 W", "1e999")


def test_a_line_that_is_no_reading_is_named_with_its_file_and_place(tmp_path: Path, seed: int) -> None:
    """Wherever it comes, and whatever it says instead of a number; what is read until then is not taken for all."""
    draw = random.Random(seed)
    for odd in NO_READINGS:
        path = tmp_path / "meter.csv"
        before, after = draw.randint(1, 400), draw.randint(1, 30)
        path.write_text("t,p\n" + "".join(f"{i / 100},1.2\n" for i in range(before)))
        meter = csv_file({"path": str(path), "time": "t", "power": "p"})
        meter.start()
        lines = [f"{(before + i) / 100},1.2" for i in range(after)]
        place = draw.randrange(after + 1)
        alone = draw.random() < 0.2 and odd not in ("", "1,25")  # those are an empty line, and a row of figures
        lines.insert(place, odd if alone else f"{(before + place) / 100 - 0.005},{odd}")
        with path.open("a") as file:
            file.write("\n".join(lines) + "\n")
        eventually(lambda meter=meter: not meter.is_reading, what="the meter goes on")  # type: ignore[misc]
        with pytest.raises(ReadingLost, match=rf"meter\.csv, line {before + 2 + place}: the meter") as caught:
            meter.stop()
        assert caught.value.remedy and "name the columns" not in caught.value.remedy
    assert "point" in _why("1,25") and "range" in _why("[Not Supported]") and "rows of figures" in _why("power")


def test_a_sample_that_is_no_number_costs_the_energy_and_not_the_block() -> None:
    class Meter:
        fact = SourceFact(source=PowerSource.METER, scope=Scope.DEVICE, name="csv", usable=True)

        def stop(self, _: object) -> tuple[PowerSeries, ...]:
            raise ReadingLost("/x/meter.csv, line 7: the meter says 'nan'", remedy="look at its range")

    lost = read_meter(Meter(), [])  # type: ignore[arg-type]
    block = record(readings(load_between(0.5, 2.5)), series=lost)
    kept = Record.model_validate_json(block.model_dump_json())
    assert len(kept.samples) == len(block.samples)
    assert block_energy(kept) is None, "the gauge's figure would be taken for the meter's"
    assert "line 7" in why_no_energy(kept) and "range" in why_no_energy(kept)
