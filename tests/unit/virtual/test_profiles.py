"""Profiles: valid, honest about their figures, and refused where they are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator import spec
from orchestrator.analysis.reproduction import figures_of
from orchestrator.analysis.reproduction.figure import OurDevice
from orchestrator.model.experiment import Study
from virtual_phones.profile import PROFILE_DIR, Profile, PublishedCell, load_profile, profile_names

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


def test_the_promised_profiles_are_there() -> None:
    assert {"galaxy_s7", "nexus_5", "nexus_6p", "pixel_7", "sd888_hdk", "galaxy_s24"} <= set(profile_names())


def constants(part: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a profile with its place, `cpu.0.max_khz`."""
    if isinstance(part, dict | list | tuple):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from constants(value, f"{name}.{key}" if name else str(key))
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield name, part


def origins(profile: Profile) -> Iterator[tuple[str, float, str]]:
    """Each constant with the name of the figure that tells its origin; empty where none does."""
    numbers = constants(profile.model_dump(exclude={"schema_version", "figures", "recording"}))
    for name, value in numbers:
        known = [one for one in profile.figures if f"{name}.".startswith(f"{one}.")]
        yield name, value, max(known, key=len, default="")


@pytest.mark.parametrize("name", profile_names())
def test_every_constant_of_a_profile_says_where_it_is_from(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    found = list(origins(profile))
    assert len(found) > 50 and [each for each in found if not each[2]] == []
    unused = set(profile.figures) - {origin for *_, origin in found}
    assert all(reduce(getattr, field.split("."), profile) for field in unused), "each names a field that exists"
    assert all(one.source and (one.cell is None or one.status == "published") for one in profile.figures.values())


IN_UNITS = {"mW": ("_w", 1e-3), "MHz": ("_hz", 1e6), "GHz": ("_khz", 1e6)}
"""Units of the texts, with the profiles' own."""


@cache
def study(name: str) -> Study:
    return Study.model_validate(yaml.safe_load((EXPERIMENTS / "published" / f"{name}.yaml").read_text()))


def published(cell: PublishedCell) -> tuple[float, str]:
    """A cell's figure and its unit."""
    (found,) = (
        (part.rows[cell.row][list(part.columns).index(cell.column)], part.columns[cell.column])
        for part in study(cell.study).called(cell.table)
        if cell.row in part.rows and cell.column in part.columns
    )
    assert found[0] is not None
    return found[0], found[1]


@pytest.mark.parametrize("name", profile_names())
def test_what_a_profile_has_from_a_study_is_there_to_the_last_digit(name: str) -> None:
    profile, numbers = load_profile(name), {}
    numbers = {place: value for place, value, _ in origins(profile)}
    for place, figure in profile.figures.items():
        if figure.cell:
            theirs, unit = published(figure.cell)
            ending, factor = IN_UNITS[unit]
            digits = len(repr(theirs).partition(".")[2])
            assert ending in place and round(numbers[place] / factor, digits) == theirs, place


@pytest.mark.parametrize("name", profile_names())
def test_no_virtual_phone_is_judged_by_what_it_was_modelled_from(name: str) -> None:
    """Every published cell of every experiment is circular if it is a constant's, follows from such, or has a profile's
    number in it."""
    profile, met = load_profile(name), 0
    phone = OurDevice("a", "virtual", profile.model)
    sources = {figure.cell for figure in profile.figures.values() if figure.cell}
    for path in sorted(EXPERIMENTS.glob("study_*.yaml")):
        asked = yaml.safe_load(path.read_text())["published"]
        whole = spec.load(path).published
        assert whole is not None
        named = Path(asked["study"]).stem
        own = {(one.table, one.row, one.column) for one in sources if one.study == named}
        for figure in figures_of(whole):
            formulas = [one for one in study(named).derived if one.table == figure.table.table]
            columns = following(figure.column, {one.column: one.formula for one in formulas})
            if own & {(figure.table.table, figure.row, column) for column in columns}:
                met += 1
                assert phone.circular(figure.metric) == "modelled", (path.stem, figure)
            assert phone.circular(figure.metric) or figure.metric in MEASURED, (path.stem, figure.metric)
    assert met >= 4 or not any(one.table == "V" for one in sources)


MEASURED = {"latency", "best", "same_predictions", "psnr", "share", "setup", "call", "call_setup", "memory"}
"""Metrics that the host computes for a virtual phone, with no number of its profile but the share of its clocks."""


def following(column: str, formulas: dict[str, str]) -> set[str]:
    """A column with all that it follows from."""
    used = set(re.findall(r"{(.*?)}", formulas.get(column, "")))
    return {column}.union(*(following(one, formulas) for one in used))


def test_the_nexus_5_has_no_vulkan() -> None:
    assert load_profile("nexus_5").apis == ("opencl", "cpu")


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no virtual phone profile 'galaxy'.*galaxy_s7"):
        load_profile("galaxy")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("idle_w: 0.17318", "idle_w: 3.5", "load_w must exceed idle_w"),
        ("sdk: 26", "sdk: 26\ncolour: black", "colour"),
        ("apis: [opencl, vulkan, cpu]", "apis: [opencl, cuda]", "apis"),
        ("level: 0.72", "level: 72", "level"),
        ("power:", "power: [", "galaxy"),
    ],
)
def test_a_wrong_profile_is_refused_with_the_file_and_the_field(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    text = (PROFILE_DIR / "galaxy_s7.yaml").read_text()
    assert old in text
    wrong = tmp_path / "galaxy.yaml"
    wrong.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=complaint):
        load_profile(str(wrong))


def test_a_variant_says_only_what_is_different(tmp_path: Path) -> None:
    variant = tmp_path / "variant.yaml"
    variant.write_text("extends: nexus_5\nname: other\nbattery: {level: 0.3}\nroot: true\n")
    base, other = load_profile("nexus_5"), load_profile(str(variant))
    assert (other.name, other.root, other.battery.level) == ("other", True, 0.3)
    assert other.battery.capacity_mah == base.battery.capacity_mah
    assert (other.gauge, other.figures) == (base.gauge, base.figures)
    variant.write_text("extends: nobody\n")
    with pytest.raises(ValueError, match="'nobody'"):
        load_profile(str(variant))


def test_the_rooted_variant_opens_the_rails_and_nothing_else() -> None:
    base, rooted = load_profile("pixel_7"), load_profile("pixel_7_rooted")
    assert all(monitor.denied for monitor in base.odpm)
    assert not any(monitor.denied for monitor in rooted.odpm)
    assert (base.root, rooted.root) == (False, True)
    assert {m.name: m.rails for m in base.odpm} == {m.name: m.rails for m in rooted.odpm}
    assert base.power == rooted.power
