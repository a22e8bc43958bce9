"""A change is found, and put down to the candidate, the device, the farm, or nobody, by what the others did."""

from __future__ import annotations

from math import exp, log
from statistics import fmean

import numpy as np
import pytest

from orchestrator.analysis.history import Change, Figure, Night, Trail, history
from orchestrator.analysis.history.steps import steps_of

pytestmark = pytest.mark.unit

NIGHTS, AT = 30, 15
COLUMNS = [Night(id=f"n{number:02}", at=86400.0 * number) for number in range(NIGHTS)]


def world(
    a: dict[tuple[int, int], np.ndarray] | None = None,
    b: dict[tuple[int, int], np.ndarray] | None = None,
    *,
    sides: int = 2,
    build: int | None = None,
    system: dict[int, int] | None = None,
    cells: int = 3,
    until: int = NIGHTS,
    seed: int = 3,
) -> list[tuple[Trail, Change]]:
    """Three phones; `a`, `b`: what is added to the logarithms of a side of (phone, cell); `build`: the night from which
    on the candidate is another one, None: every night; `system`: phone -> the night of its update."""
    random, figures = np.random.default_rng(seed), []
    for phone in range(3):
        day = random.normal(0, 0.008, NIGHTS)
        for cell in range(cells):
            logs = [day + random.normal(0, 0.002, NIGHTS) + random.normal(0, 0.001, NIGHTS) for _ in "ab"]
            logs = [each + (more or {}).get((phone, cell), 0.0) for each, more in zip(logs, (a, b), strict=True)]
            for night in range(until):
                facts = {"OS build": str(night >= (system or {}).get(phone, NIGHTS)), "agent": "1"}
                own = {"agent": str(night if build is None else night >= build)}
                figures.append(
                    Figure(
                        night=COLUMNS[night].id, device=f"phone-{phone}", cell=f"cell-{cell}", metric="latency",
                        unit="ms", a=float(np.exp(logs[0][night])), facts_a=facts,
                        **({"b": float(np.exp(logs[1][night])), "facts_b": facts | own} if sides == 2 else {}),
                    )
                )  # fmt: skip
    return history("nightly", COLUMNS[:until], figures).changes


def step(size: float, at: int = AT) -> np.ndarray:
    return size * (np.arange(NIGHTS) >= at)


EVERYWHERE = [(phone, cell) for phone in range(3) for cell in range(3)]


def test_a_slower_candidate_is_blamed_and_nobody_else() -> None:
    ((trail, change),) = world(b={(1, 2): step(0.05)})
    assert (trail.device, trail.cell, change.of, change.cause) == ("phone-1", "cell-2", "ratio", "candidate")
    assert (change.night, change.settled, change.worse) == ("n15", True, True)
    assert change.change == pytest.approx(0.05, abs=0.005) and "agent" in change.because
    assert 0.0005 < trail.noise < 0.006 < trail.level_noise < 0.02


def test_an_update_of_a_phone_is_the_phones_with_what_changed() -> None:
    slower = {(1, cell): step(0.06) for cell in range(3)}
    found = [each for each in world(a=slower, b=slower, system={1: AT}) if each[1].night == "n15"]
    assert {(trail.device, trail.cell, change.cause, change.of) for trail, change in found} == {
        ("phone-1", f"cell-{cell}", "device", "level") for cell in range(3)
    }
    assert all(change.also["OS build"] == ("False", "True") for _, change in found)


@pytest.mark.parametrize("sides", [1, 2])
def test_what_moves_everywhere_is_the_farms(sides: int) -> None:
    slower = dict.fromkeys(EVERYWHERE, step(0.06))
    found = [change for _, change in world(a=slower, b=slower, sides=sides) if change.night == "n15"]
    assert len(found) == 9 and {change.cause for change in found} == {"farm"}


def test_heat_that_the_sides_feel_differently_is_not_the_candidates() -> None:
    """A phone throttles from some night on, and the candidate slows down by a quarter more than the baseline."""
    hot = {(1, cell): step(0.2) for cell in range(3)}
    found = world(a=hot, b={key: 1.25 * each for key, each in hot.items()})
    ratios = [change for _, change in found if change.of == "ratio"]
    assert len(ratios) == 3 and {change.cause for change in ratios} == {"device"}
    assert "heat or battery" in ratios[0].because


def test_a_candidate_in_a_warming_room_is_blamed_all_the_same() -> None:
    warm = 0.2 * np.clip((np.arange(NIGHTS) - 5) / 20, 0, 1)
    found = world(
        a=dict.fromkeys(EVERYWHERE, warm), b=dict.fromkeys(EVERYWHERE, 1.1 * warm) | {(0, 0): warm + step(0.06)}
    )
    assert [(trail.device, change.night) for trail, change in found if change.cause == "candidate"] == [
        ("phone-0", "n15")
    ]


def test_a_ratio_that_drifts_over_weeks_is_not_the_candidates() -> None:
    """The phone's nights differ too much to show the heat that its ratio follows."""
    slowly = 0.02 * np.clip((np.arange(NIGHTS) - 3) / 24, 0, 1)
    found = [world(b={(1, 2): slowly}, seed=seed) for seed in range(4)]
    told = [change for changes in found for _, change in changes if change.of == "ratio"]
    assert "candidate" not in {change.cause for change in told}


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        (step(0.04), "device"),
        (step(0.04, AT + 2), "device"),
        (step(0.08), "candidate"),
        (step(0.04, AT + 7), "candidate"),
    ],
    ids=["in that night", "two nights later", "by more than the phone", "a week later"],
)
def test_a_candidate_that_changes_with_its_phone_is_not_blamed(more: np.ndarray, cause: str) -> None:
    """A phone becomes 6 % slower. Where the ratio changes about that night, by no more, nobody can tell whose it is."""
    slower = {(1, cell): step(0.06) for cell in range(3)}
    found = world(a=slower, b=slower | {(1, 0): step(0.06) + more})
    told = [(trail.device, trail.cell, change.cause) for trail, change in found if change.of == "ratio"]
    assert told == [("phone-1", "cell-0", cause)]


@pytest.mark.parametrize(("system", "cause"), [({1: AT}, "device"), (None, "unknown")])
def test_a_candidate_that_is_what_it_was_is_not_blamed(system: dict[int, int] | None, cause: str) -> None:
    ((_, change),) = world(b={(1, 2): step(0.05)}, build=NIGHTS, system=system)
    assert change.cause == cause


def test_a_cell_alone_with_one_side_is_the_candidates_only_where_it_is_another_one() -> None:
    ((_, change),) = world(a={(1, 2): step(0.08)}, sides=1)
    assert change.cause == "unknown" and "did not move" in change.because
    found = world(a={(phone, 0): step(0.08) * (phone == 1) for phone in range(3)}, sides=1, cells=1)
    assert [change.cause for _, change in found] == ["unknown"]


def test_what_is_new_is_told_after_its_second_night_and_a_spike_is_not() -> None:
    ((_, change),) = world(b={(1, 2): step(0.05)}, until=AT + 2)
    assert (change.night, change.settled, change.cause) == ("n15", False, "candidate")
    assert world(b={(1, 2): step(0.05)}, until=AT + 1) == []
    assert world(b={(1, 2): step(0.05) - step(0.05, AT + 1)}, until=AT + 2) == []


def test_nights_without_a_figure_and_short_histories() -> None:
    assert world(until=3) == [] == world(until=1)
    values = list(np.random.default_rng(1).normal(0, 0.01, 12))
    assert steps_of(values).steps == () and steps_of([]).steps == () and steps_of([0.0]).noise == 0.0
    assert steps_of([0.0] * 8 + [0.1, 0.1]).steps[0].place == 8


def test_memory_that_is_always_the_same_has_no_change_whatever_means_make_of_its_last_digits() -> None:
    random, figures = np.random.default_rng(3), []
    for cell in range(40):
        value = float(random.uniform(1, 1e7))
        of_blocks = {blocks: exp(fmean([log(value)] * blocks)) for blocks in (10, 11, 12)}
        assert cell or len(set(of_blocks.values())) > 1
        for night, column in enumerate(COLUMNS):
            a, b = of_blocks[int(random.integers(10, 13))], of_blocks[12 if night >= AT else 10]
            figures.append(
                Figure(night=column.id, device="phone", cell=f"cell-{cell}", metric="memory", unit="MB", a=a, b=b)
            )
    assert history("nightly", COLUMNS, figures).changes == []


def test_no_change_is_told_of_quiet_nights() -> None:
    told = sum(len(world(seed=seed)) for seed in range(12))
    assert told <= 3  # of 216 series, 1 % of each level and of all ratios together
