"""Fault scripts and control requests are checked at the boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from virtual_phones.control.client import Request
from virtual_phones.faults import FAULT, Slow, ThermalTrip, Unplug, load_script


def test_a_script_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    script = tmp_path / "faults.yaml"
    script.write_text(
        "- {at_s: 10, do: {fault: unplug, seconds: 5}}\n"
        "- {at_s: 2.5, phone: virtual-nexus_5-0, do: {fault: thermal_trip, temp_c: 50}}\n"
    )
    first, second = load_script(script)
    assert (first.phone, first.do) == ("virtual-nexus_5-0", ThermalTrip(temp_c=50))
    assert (second.at_s, second.phone, second.do) == (10, "*", Unplug(seconds=5))


@pytest.mark.parametrize(
    "text",
    ["- {at_s: 1, do: {fault: explode}}", "- {at_s: -1, do: {fault: hang}}", "- {do: {fault: hang}}", "hang", "- ["],
)
def test_a_wrong_script_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    script = tmp_path / "faults.yaml"
    script.write_text(text)
    with pytest.raises(ValueError, match=r"faults\.yaml"):
        load_script(script)


def test_faults_have_defaults_and_bounds() -> None:
    assert FAULT.validate_python({"fault": "slow"}) == Slow(factor=10.0)
    for wrong in ({"fault": "slow", "factor": 0}, {"fault": "battery_level", "level": 2}, {"fault": "hang", "x": 1}):
        with pytest.raises(ValueError, match=r"validation error"):
            FAULT.validate_python(wrong)


def test_requests_are_strict() -> None:
    assert Request.model_validate_json('{"do": "clear"}').phone == "*"
    with pytest.raises(ValueError, match="do"):
        Request.model_validate_json('{"do": "shutdown"}')
