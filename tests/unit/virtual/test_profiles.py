"""Profiles: valid, honest about their figures, and refused where they are wrong."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest

from device_agent.virtual.profile import PROFILE_DIR, load_profile, profile_names


def test_the_promised_profiles_are_there() -> None:
    assert {"galaxy_s7", "nexus_5", "nexus_6p", "pixel_7", "sd888_hdk", "galaxy_s24"} <= set(profile_names())


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_is_named_as_its_file_and_says_where_its_power_is_from(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert {"power.idle_w", "power.load_w"} <= set(profile.figures)
    for field in profile.figures:
        reduce(getattr, field.split("."), profile)  # every figure names a field that exists


def test_published_figures_of_study_s() -> None:
    power = {name: load_profile(name).power for name in ("galaxy_s7", "nexus_6p", "nexus_5")}
    assert [(p.idle_w, p.load_w) for p in power.values()] == [
        (0.17318, 2.92179),
        (1.48097, 5.46189),
        (0.42271, 1.17045),
    ]


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
