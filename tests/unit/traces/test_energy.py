"""Means, intervals and joules of traces: known by construction, and as published from the authors' own traces."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from farm.cli import main
from orchestrator.analysis.student_t import half_width, welch_freedom
from orchestrator.energy import Trace, time_mean_w
from orchestrator.exchange.power_traces import Recording, TraceDoubtCode, read_trace
from orchestrator.exchange.power_traces.comparison import compare
from orchestrator.exchange.power_traces.means import autocorrelation_time, plain_mean, time_mean
from orchestrator.exchange.power_traces.points import Points
from orchestrator.model.errors import TableError
from tests.source_tree import ROOT

from .write import table, trepn

pytestmark = pytest.mark.unit

TRACES = ROOT.parent / "shared" / "data" / "mobile_convnet"
Farm = Callable[..., tuple[int, str, str]]


@pytest.fixture
def farm(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Farm:
    """Runs a command in an empty folder; exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def recording(t_s: object, power_w: object, form: str = "csv", path: str = "a.csv") -> Recording:
    return Recording(Path(path), form, "power", np.asarray(t_s, dtype=float), np.asarray(power_w, dtype=float))


def test_an_interval_is_as_wide_as_students_t_says_and_an_exact_figure_has_none() -> None:
    assert half_width(2.0, 5) == pytest.approx(2 * 2.5706, abs=1e-4)
    assert half_width(0.0, welch_freedom((0.0, 3), (0.0, 1))) == 0.0
    assert welch_freedom((1.0, 4), (0.0, 1)) == pytest.approx(4)
    assert welch_freedom((1.0, 4), (1.0, 4)) == pytest.approx(8)


def test_time_weighting_counts_time_and_not_readings() -> None:
    """1 W for a second in a hundred readings, 3 W for nine seconds in ten."""
    times = np.concatenate([np.linspace(0, 1, 100), np.linspace(1.000001, 10, 10)])
    power = np.concatenate([np.full(100, 1.0), np.full(10, 3.0)])
    assert plain_mean(recording(times, power)).value == pytest.approx(130 / 110)
    assert time_mean(recording(times, power)).value == pytest.approx(2.8, abs=1e-3)


def test_means_are_those_of_the_energy_of_blocks() -> None:
    """Traces of others and blocks of our own are integrated alike."""
    generator = np.random.default_rng(5)
    times, power = np.cumsum(generator.uniform(0.01, 0.2, 300)), generator.uniform(1, 3, 300)
    ours, trace = recording(times, power), Trace(times, power)
    assert time_mean(ours).value == pytest.approx(time_mean_w(trace), rel=1e-12)


def test_readings_of_one_time_count_as_their_mean() -> None:
    assert time_mean(recording([0, 0, 0, 1, 2, 2], [1, 2, 3, 2, 4, 0])).value == pytest.approx(2.0)


def _correlated(generator: np.random.Generator, count: int, keep: float) -> np.ndarray:
    noise = generator.normal(size=count)
    values = np.empty(count)
    values[0] = noise[0] / math.sqrt(1 - keep**2)
    for i in range(1, count):
        values[i] = keep * values[i - 1] + noise[i]
    return values


def test_autocorrelation_time_of_a_known_process() -> None:
    """(1 + r) / (1 - r) for a first-order process."""
    values = _correlated(np.random.default_rng(1), 50_000, 0.8)
    assert autocorrelation_time(values - values.mean()) == pytest.approx(9.0, rel=0.15)
    white = np.random.default_rng(2).normal(size=50_000)
    assert autocorrelation_time(white - white.mean()) == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("keep", "files"), [(0.0, 1), (0.8, 1), (0.8, 2), (0.8, 4)])
def test_intervals_hold_the_truth_as_often_as_they_say(keep: float, files: int) -> None:
    generator = np.random.default_rng(7)
    hits, runs = 0, 100
    for _ in range(runs):
        group = [[recording(np.arange(400) / 10, level + _correlated(generator, 400, keep) / 5) for _ in range(files)]
                 for level in (5.0, 8.0)]  # fmt: skip
        net = compare(*group).plain.net_power_w
        hits += net.low <= 3.0 <= net.high
    assert hits / runs >= 0.90
    assert files > 2 or hits / runs <= 0.995, "of several files the larger of two spreads counts"


def test_a_gauge_and_a_meter_are_not_mixed() -> None:
    gauge, meter = recording([0, 1], [1, 1], "trepn"), recording([0, 1], [2, 2], "monsoon")
    with pytest.raises(TableError, match="mix"):
        compare([gauge], [meter])
    found = compare([gauge], [recording([0, 1], [2, 2])])
    assert TraceDoubtCode.MIXED_FORMATS in {doubt.code for doubt in found.doubts}


def test_a_baseline_above_the_load_is_doubted(tmp_path: Path, farm: Farm) -> None:
    high, low = trepn(tmp_path / "high.csv", lambda _: 2.0), trepn(tmp_path / "low.csv", lambda _: 1.0)
    code, out, _ = farm("energy", "--baseline", high, "--load", low, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["net_power_w"] == pytest.approx(-1.0)
    assert found["energy_per_inference_j"] is None
    assert "baseline_above_load" in [doubt["code"] for doubt in found["doubts"]]


def test_command_shows_a_table_and_draws(tmp_path: Path, farm: Farm) -> None:
    idle = trepn(tmp_path / "idle.csv", lambda t_s: 0.2 + 0.01 * math.sin(9 * t_s))
    busy = trepn(tmp_path / "busy.csv", lambda t_s: 2.2 + 0.01 * math.cos(7 * t_s))
    for name in ("p.svg", "p.png", "p.html"):
        arguments = ("--baseline", idle, "--load", busy, "--seconds-per-inference", 0.5, "--plot", tmp_path / name)
        code, out, _ = farm("energy", *arguments)
        assert code == 0, out
        assert "2000.0" in out or "1999.9" in out
        assert (tmp_path / name).stat().st_size > 5000
    assert "http" not in (tmp_path / "p.html").read_text()
    code, _, err = farm("energy", "--baseline", idle, "--load", busy, "--plot", tmp_path / "p.gif")
    assert (code, "svg" in err) == (1, True)


def test_a_forced_form_is_obeyed_and_a_wrong_one_told(tmp_path: Path, farm: Farm) -> None:
    path = table(tmp_path / "a.csv", "time [s],power [W]", [(i, 1) for i in range(40)])
    code, _, err = farm("energy", "--baseline", path, "--load", path, "--format", "trepn")
    assert (code, "no row of titles" in err) == (1, True)
    code, _, err = farm("energy", "--baseline", path, "--load", path, "--format", "excel")
    assert (code, "trepn, monsoon" in err) == (2, True)


def test_published_power_and_energy_of_the_galaxy_s7(farm: Farm) -> None:
    """Table of study S, from the authors' traces: W and J by the plain mean, to the digits that were printed."""
    folder = TRACES / "galaxy_s7" / "power"
    if not folder.is_dir():
        pytest.skip("the authors' traces (shared/data/mobile_convnet) are not on this machine")
    baseline = ("--baseline", folder / "Baseline.csv", "--baseline", folder / "Baseline2.csv")
    published = {"Sequential": (12.33182, 1552.51, 1379.33, 17.0), "Parallel": (0.2071, 2921.79, 2748.61, 0.569)}
    for name, (seconds, load_mw, net_mw, energy_j) in published.items():
        loads = ("--load", folder / f"{name}.csv", "--load", folder / f"{name}2.csv")
        code, out, _ = farm("energy", *baseline, *loads, "--seconds-per-inference", seconds, "--json")
        found = json.loads(out)
        assert code == 0
        assert round(found["baseline_power_w"] * 1e3, 2) == 173.18
        assert round(found["load_power_w"] * 1e3, 2) == load_mw
        assert round(found["net_power_w"] * 1e3, 2) == net_mw
        assert float(f"{found['energy_per_inference_j']:.3g}") == energy_j
        assert found["time_weighted"]["net_power_w"] == pytest.approx(found["net_power_w"], rel=0.01)


def test_the_other_layout_of_the_authors(farm: Farm) -> None:
    """The Nexus 5: our means are the files' own averages; the footer names a second run that is not in the file."""
    folder = TRACES / "nexus_5" / "power"
    if not folder.is_dir():
        pytest.skip("the authors' traces (shared/data/mobile_convnet) are not on this machine")
    for name, mean_mw in {"Baseline": 821.707, "Sequential": 1023.383, "Parallel": 850.194}.items():
        (found,) = read_trace(folder / f"{name}.csv")
        assert plain_mean(found).value * 1e3 == pytest.approx(mean_mw, abs=1e-3)
        assert [doubt.code for doubt in found.doubts] == [TraceDoubtCode.FOOTER_OF_OTHER_RUNS]


def wandering(kept: float, count: int, seed: int) -> Recording:
    rng, walk = np.random.default_rng(seed), [0.0]
    for _ in range(count - 1):
        walk.append(kept * walk[-1] + math.sqrt(1 - kept**2) * rng.normal())
    return recording(np.arange(count) / 10, 2 + 0.1 * np.array(walk))


def test_short_traces_of_readings_that_are_alike_cover_or_are_doubted() -> None:
    """The windowed time alone covers 84 % with 300 readings and a correlation time of 10."""
    found = [compare([wandering(0.905, 300, seed)], [wandering(0.905, 300, 999 - seed)]) for seed in range(100)]
    held = [each.plain.load_power_w.low <= 2 <= each.plain.load_power_w.high for each in found]
    assert sum(held) >= 89
    short = compare([wandering(0.99, 50, 1)], [wandering(0.99, 50, 2)])
    assert TraceDoubtCode.ALIKE_READINGS in {doubt.code for doubt in short.doubts} and short.level is None
    long = compare([wandering(0.5, 3000, 1)], [wandering(0.5, 3000, 2)])
    assert TraceDoubtCode.ALIKE_READINGS not in {doubt.code for doubt in long.doubts} and long.level == 0.95


def test_one_file_and_a_copy_are_doubted() -> None:
    def codes(baseline: list[Recording], load: list[Recording]) -> list[TraceDoubtCode]:
        return [doubt.code for doubt in compare(baseline, load).doubts]

    rest, one, two, three = (wandering(0.0, 400, seed) for seed in range(4))
    assert codes([rest], [one]).count(TraceDoubtCode.ONE_FILE) == 2
    assert codes([rest], [one, two, three]).count(TraceDoubtCode.ONE_FILE) == 1
    assert TraceDoubtCode.SAME_READINGS not in codes([rest], [one, two, three])
    assert TraceDoubtCode.SAME_READINGS in codes([rest], [one, two, one])
    assert TraceDoubtCode.SAME_READINGS in codes([rest], [rest])


def test_a_meter_that_stands_still_for_a_while_is_doubted() -> None:
    random = np.random.default_rng(11)
    power_w = 2 + 0.1 * random.normal(size=1000)
    still = np.where((np.arange(1000) >= 300) & (np.arange(1000) < 500), power_w[300], power_w)
    slow_gauge = np.repeat(power_w[:40], 25)
    coarse = np.round(2 + 0.004 * random.normal(size=1000), 2)
    well = [wandering(0.0, 400, seed) for seed in range(3)]

    def doubts(values: np.ndarray) -> list[str]:
        own = recording(np.arange(1000) / 10, values, path="own.csv")
        return [doubt.detail for doubt in compare(well, [own]).doubts if doubt.code is TraceDoubtCode.STUCK]

    assert doubts(still) == ["200 of its 1000 readings, from 30 s on, are the same"]
    assert doubts(power_w) == doubts(slow_gauge) == doubts(coarse) == []
    parts = Points()
    for block in np.array_split(np.arange(1000), 13):
        parts.extend(block / 10, still[block])
    facts = parts.finish()[2]
    assert (facts.equal, facts.equal_at_s, facts.runs) == (200, 30.0, 801)


@pytest.mark.parametrize(
    ("power_w", "code"),
    [
        (np.zeros(400), TraceDoubtCode.STUCK),
        (np.full(400, 1.25), TraceDoubtCode.STUCK),
        (np.linspace(1900, 2100, 400), TraceDoubtCode.IMPLAUSIBLE_POWER),
        (np.linspace(0.0014, 0.0015, 400), TraceDoubtCode.IMPLAUSIBLE_POWER),
    ],
)
def test_a_meter_that_is_stuck_and_a_wrong_unit_are_doubted(power_w: np.ndarray, code: TraceDoubtCode) -> None:
    times = np.arange(400) / 10
    well = [wandering(0.0, 400, seed) for seed in range(6)]
    assert code in {doubt.code for doubt in compare(well[:3], [recording(times, power_w), *well[3:]]).doubts}
    assert code not in {doubt.code for doubt in compare(well[:3], well[3:]).doubts}
