"""Change points: where a step is found, what is none, and `farm changes` on a file."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for

from orchestrator.analysis.change_points import FEWEST, LONG, Changes, _least_squares, _most_energy, change_points
from orchestrator.analysis.distances import MANY, distances
from orchestrator.analysis.statistics.serial import independent_shares
from orchestrator.analysis.step_place import _weights, likeliest_place
from tests.unit.imports.conftest import Farm

pytestmark = pytest.mark.unit


def series(*levels: tuple[int, float], noise: float = 0.02, seed: int = 1) -> list[float]:
    """Return so many values of each level, with a noise that is a share of it."""
    generator = random.Random(seed)
    return [level * (1 + generator.gauss(0, noise)) for count, level in levels for _ in range(count)]


def places(found: Changes) -> list[int]:
    return [point.index for point in found.points]


def test_ticks_of_a_coarse_clock_that_come_together_are_no_step() -> None:
    """One value in ten is a tick higher. What is a step in whole ticks is one, also among such."""
    random_ = np.random.default_rng(4)
    ticks = [10 + (random_.random(60) < 0.1) for _ in range(60)]
    assert sum(bool(change_points(each.tolist()).points) for each in ticks) <= 2, "4 by Student's t alone"
    stepped = [each + (np.arange(60) >= 30) for each in ticks[:20]]
    assert sum(any(abs(place - 30) <= 1 for place in places(change_points(each.tolist()))) for each in stepped) >= 19
    assert places(change_points([5.0] * 9 + [6.0] * 3)) == [9]


def test_a_step_is_found_within_a_night() -> None:
    """5 % at a noise of 2 %, thirty nights a side, up and down; a step of noise alone is hardly ever found."""
    found = [
        places(change_points(series((30, 100.0), (30, 100.0 * ratio), seed=seed)))
        for seed in range(20)
        for ratio in (1.05, 0.95)
    ]
    assert sum(len(each) == 1 and abs(each[0] - 30) <= 1 for each in found) >= 0.8 * len(found)
    assert sum(bool(places(change_points(series((60, 100.0), seed=seed)))) for seed in range(40)) <= 2


def test_short_series_tell_their_step_and_no_other(seed: int) -> None:
    """98 % of steps of five standard deviations and more are found, one off at most, in ten to fourteen values; by a
    correlation that so few values seem to show half to four fifths. Of series without a step 0.5 % have one."""
    generator, found, false = np.random.default_rng(seed), 0, 0
    for _ in range(120):
        count, size = int(generator.integers(10, 15)), generator.uniform(5, 10)
        values = 100 + generator.normal(0, 1, count)
        false += bool(places(change_points(values.tolist())))
        values[count // 2 :] += size * generator.choice([-1, 1])
        found += any(abs(place - count // 2) <= 1 for place in places(change_points(values.tolist())))
    assert found >= 110 and false <= 6


def wandering(generator: np.random.Generator, count: int) -> np.ndarray:
    """Noise of one around a level that rises, walks at random, or swings slowly, by more than the noise."""
    kind, own = generator.integers(3), generator.normal(0, 1, count)
    if kind == 0:
        return own + generator.uniform(3, 6) * np.arange(count) / count
    walk = np.cumsum(generator.normal(0, 0.2, count))
    swing = generator.uniform(1, 2) * np.sin(2 * np.pi * (np.arange(count) / count + generator.random()))
    return np.asarray(own + (walk if kind == 1 else swing))


def test_a_level_that_wanders_has_no_step_but_that_which_it_has(seed: int) -> None:
    """2 % of such series of sixty values have one, by tests of means alone 78 %; of steps of six deviations in them are
    99 % found."""
    generator, found, false = np.random.default_rng(seed), 0, 0
    for _ in range(60):
        values = wandering(generator, 60)
        false += bool(places(change_points((100 + values).tolist())))
        values[30:] += 6 * generator.choice([-1, 1])
        found += any(abs(place - 30) <= 1 for place in places(change_points((100 + values).tolist())))
    assert false <= 8 and found >= 54


def test_a_change_that_may_be_a_level_that_wanders_is_marked(seed: int) -> None:
    """One series in ten has a change point, one in three hundred one without the mark; a large step has none."""
    generator, unmarked = np.random.default_rng(seed), 0
    for _ in range(150):
        count = int(generator.integers(10, 61))
        back = np.exp(-1 / generator.uniform(5, 200))
        walk = generator.uniform(1.0, 2.5) * (1 - back**2) ** 0.5 * generator.normal(0, 1, count)
        level = [float(walk[0])]
        for each in walk[1:]:
            level.append(back * level[-1] + each)
        found = change_points((100 + np.array(level) + generator.normal(0, 1, count)).tolist())
        unmarked += any(not point.may_wander for point in found.points)
    assert unmarked <= 5
    (point,) = change_points(series((20, 100.0), (20, 120.0), seed=seed)).points
    assert not point.may_wander


def test_a_step_of_many_ticks_is_told_by_few_values(seed: int) -> None:
    """The whole numbers are of four kinds; those of a coarse clock that come together are within some ticks."""
    assert places(change_points([50, 51, 50, 50, 51, 50, 80, 81, 80, 80, 81, 80])) == [6]
    generator = np.random.default_rng(seed)
    for _ in range(20):
        tick, ticks = float(generator.choice([0.1, 1.0, 16.6])), int(generator.integers(8, 60))
        half = int(generator.integers(5, 9))
        kinds = np.concatenate([generator.permutation(half) % 2, generator.permutation(half) % 2 + ticks])
        assert half in places(change_points((tick * (100 + kinds)).tolist())), "beside three ticks in a row"


def test_a_change_that_is_soon_taken_back_is_two() -> None:
    assert places(change_points(series((80, 100.0), (10, 110.0), (80, 100.0)))) == [80, 90]
    few = [series((16, 100.0), (5, 130.0), (29, 100.0), noise=0.05, seed=seed) for seed in range(20)]
    assert sum(places(change_points(values)) == [16, 21] for values in few) >= 17


def test_many_steps_are_told_apart_with_their_levels() -> None:
    found = change_points(series((20, 100.0), (20, 120.0), (20, 90.0), (4, 130.0)))
    assert places(found) == [20, 40, 60]
    assert [point.magnitude for point in found.points] == pytest.approx([0.2, -0.25, 0.44], abs=0.04)
    assert found.points[0].before == pytest.approx(100, rel=0.02) and found.points[0].after == pytest.approx(
        120, rel=0.02
    )
    assert places(change_points(series((20, 100.0), (20, 120.0), (20, 90.0)), least=0.22)) == [40]


def test_spikes_are_no_change() -> None:
    values = series((60, 100.0))
    for place in (10, 11, 40, 59):
        values[place] *= 3
    assert places(change_points(values)) == []
    values[30:] = [value * 1.1 for value in values[30:]]
    assert places(change_points(values)) == [30]


def test_the_noise_floor_is_that_of_the_series_not_of_its_steps() -> None:
    quiet = change_points(series((50, 100.0), noise=0.02))
    stepping = change_points(series(*[(5, 100.0 * level) for level in (1, 2, 4, 8, 4, 2, 1, 2, 3, 1)], noise=0.0))
    assert quiet.noise == pytest.approx(2.0, rel=0.3) and stepping.floor > 0
    grid = [10.0, 11.0] * 20
    assert places(change_points(grid)) == []


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 7, [5.0] * 50, [0.0] * 20])
def test_nothing_is_found_where_nothing_is(values: list[float]) -> None:
    assert places(change_points(values)) == []


def test_a_step_without_noise_is_certain() -> None:
    (point,) = change_points([0.0] * 10 + [1.0] * 10).points
    assert (point.index, point.p_value, point.magnitude, point.after) == (10, 0.0, None, 1.0)


def alike(count: int, correlation: float, seed: int) -> list[float]:
    """Values that resemble the one before."""
    generator, walk = random.Random(seed), [0.0]
    for _ in range(count + 20):
        walk.append(correlation * walk[-1] + (1 - correlation**2) ** 0.5 * generator.gauss(0, 1))
    return [100 + 2 * value for value in walk[-count:]]


def test_values_that_resemble_the_one_before_are_no_steps() -> None:
    told = [change_points(alike(40, 0.6, seed)) for seed in range(80)]
    assert sum(bool(each.points) for each in told) <= 4
    assert 0.5 < float(np.mean([each.alike for each in told])) < 0.8
    assert float(np.mean([change_points(alike(40, 0.0, seed)).alike for seed in range(20)])) < 0.3


def test_a_step_among_values_that_are_alike_is_found_all_the_same() -> None:
    found = []
    for seed in range(10):
        values = alike(60, 0.4, seed)
        values[30:] = [value + 10 for value in values[30:]]
        found.append(places(change_points(values)))
    assert sum(len(each) == 1 and abs(each[0] - 30) <= 1 for each in found) >= 8


def likelihood(values: np.ndarray, place: int, r: float) -> float:
    """Return the likelihood of a step of any size before a place, by least squares of values that are freed of r."""
    step = np.column_stack([np.ones(len(values)), np.arange(len(values)) >= place])
    freed = [np.concatenate([each[:1] * (1 - r**2) ** 0.5, each[1:] - r * each[:-1]]) for each in (values, *step.T)]
    rest = freed[0] - np.column_stack(freed[1:]) @ np.linalg.lstsq(np.column_stack(freed[1:]), freed[0], rcond=None)[0]
    return float((1 - r**2) ** 0.5 * (rest @ rest) ** (-len(values) / 2))


@pytest.mark.parametrize("r", [-0.3, 0.0, 0.6])
def test_the_likelihood_of_a_place_is_that_of_least_squares(r: float) -> None:
    values = np.array(alike(25, 0.5, 3)) - 100
    values[11:] += 3
    found = _weights(values, np.array([r]))
    expected = np.array([likelihood(values, place, r) for place in range(1, len(values))])
    assert found == pytest.approx(expected / expected.max(), rel=1e-6)


def test_a_step_is_put_where_it_is_likeliest() -> None:
    """It is found at its place, or next to it, more often than by the least spread where values are alike."""
    by_spread = by_likelihood = 0
    for seed in range(100):
        values = np.array(alike(60, 0.6, seed))
        values[30:] += 5
        by_spread += abs(_least_squares(values) - 30) <= 1
        by_likelihood += abs(likeliest_place(values - values.mean(), FEWEST) - 30) <= 1
    assert by_likelihood > by_spread and by_likelihood >= 80
    assert likeliest_place(np.array([0.0] * 4 + [1.0] * 9), FEWEST) == 4


def test_three_values_are_a_level_and_two_are_not() -> None:
    assert places(change_points(series((20, 100.0), (3, 120.0)))) == [20]
    assert places(change_points(series((20, 100.0), (2, 120.0)))) == []


def test_neighbours_that_are_alike_are_worth_less() -> None:
    generator, walk = random.Random(3), [0.0]
    for _ in range(4000):
        walk.append(0.6 * walk[-1] + generator.gauss(0, 1))
    assert independent_shares(np.array([walk])).item() == pytest.approx(0.25, abs=0.05)
    assert independent_shares(np.array([[generator.gauss(0, 1) for _ in range(4000)]])).item() > 0.9


def energy(x: Sequence[float], y: Sequence[float]) -> float:
    """The statistic as the paper has it."""
    between = np.mean([abs(a - b) for a in x for b in y])
    within = [np.mean([abs(v[i] - v[k]) for k in range(len(v)) for i in range(k)]) for v in (x, y)]
    return float((2 * between - sum(within)) * len(x) * len(y) / (len(x) + len(y)))


def test_the_energy_statistic_is_that_of_the_paper() -> None:
    for seed in range(5):
        values = series((9, 100.0), (14, 101.0 + seed), seed=seed)
        best = max(range(FEWEST, len(values) - FEWEST + 1), key=lambda k: energy(values[:k], values[k:]))
        assert _most_energy(np.array([values, values[::-1]]))[0] == best


@pytest.mark.parametrize("count", [3, MANY - 1, MANY, 700])
def test_distances_of_many_values_are_those_of_all_pairs(count: int) -> None:
    rows = np.round(np.random.default_rng(count).normal(100, 2, (2, count)), 1)
    for values, earlier, later in zip(rows, *distances(rows), strict=True):
        assert earlier == pytest.approx([np.abs(values[:n] - values[n]).sum() for n in range(count)])
        assert later == pytest.approx([np.abs(values[n:] - values[n]).sum() for n in range(count)])


@pytest.mark.parametrize("count", [53, 117])
@pytest.mark.parametrize("value", [0.8953899563024488, -1417.7701512507142, 1e-9, 4.5e6])
def test_what_is_always_the_same_has_no_change_but_that_which_it_has(value: float, count: int) -> None:
    """Means of equal values differ in their last digits."""
    assert places(change_points([value] * count)) == []
    assert places(change_points([value] * count + [1.01 * value] * count)) == [count]


@pytest.mark.parametrize("exponent", [-1040, -900, 900, 1016])
def test_very_large_and_very_small_values_have_the_same_changes(exponent: int) -> None:
    values = np.random.default_rng(5).normal(100, 1, 60) + 4 * (np.arange(60) >= 30)
    known, found = change_points(values.tolist()), change_points(np.ldexp(values, exponent).tolist())
    assert places(found) == places(known) == [30]
    assert found.points[0].magnitude == pytest.approx(known.points[0].magnitude, rel=1e-6)
    assert found.points[0].after == pytest.approx(np.ldexp(known.points[0].after, exponent))


def test_numbers_of_builds_are_no_dates(farm: Farm, tmp_path: Path) -> None:
    lines = [f"a,{10000095 + n},{value}" for n, value in enumerate(series((30, 100.0), (30, 110.0)))]
    (tmp_path / "s.csv").write_text("\n".join(["series,time,value", *lines]) + "\n")
    (found,) = json.loads(farm("changes", "s.csv", "--json")[1])
    assert [point["time"] for point in found["change_points"]] == ["10000125"]


def test_a_change_of_a_long_series_is_found_and_one_that_is_soon_taken_back() -> None:
    values = np.random.default_rng(5).normal(100, 1, 2 * LONG)
    values[LONG:] += 2
    values[900:912] += 6
    assert places(change_points(values.tolist())) == pytest.approx([900, 912, LONG], abs=5)


def test_p_is_that_of_students_t_for_all_places() -> None:
    """Values whose neighbours are on different sides of the level are as good as independent."""
    values = [value + (-1) ** n for n, value in enumerate(series((30, 100.0), (30, 104.0), noise=0.003))]
    (point,) = change_points(values).points
    told = scipy.stats.ttest_ind(values[: point.index], values[point.index :])
    assert point.p_value == pytest.approx(float(told.pvalue) * (60 - 2 * FEWEST + 1), rel=1e-6)


def written(path: Path, values: Sequence[float], name: str = "a") -> None:
    path.write_text("Series,time,commit,value\n" + "".join(f"{name},{n},c{n},{v}\n" for n, v in enumerate(values)))


def test_a_file_is_read_in_order_of_time(farm: Farm, tmp_path: Path) -> None:
    values = series((30, 100.0), (30, 110.0))
    lines = [f"night,2026-{1 + n // 28:02}-{1 + n % 28:02},{value}" for n, value in enumerate(values)]
    flat = [f"flat,{n},5" for n in range(20)]
    (tmp_path / "s.csv").write_text("\n".join(["series,time,value", *reversed(lines), *flat]) + "\n")
    code, out, err = farm("changes", "s.csv", "--json")
    night, none = json.loads(out)
    (point,) = night["change_points"]
    assert (code, err, night["series"], night["values"], none["change_points"]) == (0, "", "night", 60, [])
    assert (point["index"], point["time"]) == (30, "2026-02-03") and point["magnitude"] == pytest.approx(0.1, abs=0.02)
    assert farm("changes", "s.csv", "--json")[1] == out
    code, out, err = farm("changes", "s.csv")
    assert code == 0 and "+" in out and "2026-02-03" in out and "1 of 2 series have none" in err
    assert json.loads(farm("changes", "s.csv", "--least", "20%", "--json")[1])[0]["change_points"] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("series,value\na,1\n", "no column time"),
        ("series,time,value\n", "no row"),
        ("series,time,value\na,1,x\n", "line 2, column 'value': found 'x'"),
        ("series,time,value\na,1,nan\n", "finite"),
        ("series,time,value\na,yesterday,1\n", "column 'time': found 'yesterday'"),
        ("series,time,value\na,5,1\na,2026-11-23,1\n", "line 3, column 'time': found '2026-11-23'"),
        ("series,time,value\na,2026-11-23,1\na,5,1\n", "line 3, column 'time': found '5'"),
        ("series,time,value,value\na,5,1,2\n", "several columns value"),
    ],
)
def test_a_file_that_is_no_series_is_refused_with_its_place(farm: Farm, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "s.csv").write_text(text)
    code, _, err = farm("changes", "s.csv")
    assert code == 1 and told in err
