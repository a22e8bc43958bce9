from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.model.errors import SpecError
from orchestrator.model.wiring import WiredDevice
from orchestrator.spec import SpecProblems
from orchestrator.spec.wiring_file import load_wiring, parse_wiring
from orchestrator.system.config import Settings

GOOD = """
devices:
  R58M12ABC:
    supply: {uhubctl: {location: 1-1, port: 3}}
    meter: {monsoon: {serial: 12345}}
    reference_temp: 24 C
  4711:
    supply:
      command: {cut: [usb-relay, "off", 3], restore: [usb-relay, "on", 3]}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(SpecProblems) as caught:
        parse_wiring(text, "wiring.yaml")
    return [f"{p.place.line}:{p.place.column} {p}" for p in caught.value.problems]


def test_lab_file_is_read() -> None:
    lab = parse_wiring(GOOD)
    wired = lab.device("R58M12ABC")
    assert wired.supply and wired.supply.uhubctl and wired.supply.uhubctl.location == "1-1"
    assert wired.meter == {"monsoon": {"serial": 12345}} and wired.reference_temp == 24.0
    other = lab.device("4711").supply
    assert other and other.command and other.command.cut == ("usb-relay", "off", "3")
    assert lab.device("unknown") == WiredDevice()


def test_every_problem_is_told_with_its_place() -> None:
    found = problems(
        "devices:\n"
        "  A:\n"
        "    supply: {uhubctl: {location: 1-1, port: 0}}\n"
        "    reference_temp: 24\n"
        "  B:\n"
        "    suply: {}\n"
        "    meter: {monson: {}}\n"
    )
    assert found[0].startswith("3:45 devices.A.supply.uhubctl.port: ")
    assert found[1].startswith("4:21 devices.A.reference_temp: 24 has no unit; write e.g. `24 C`")
    assert found[2].startswith("6:5 devices.B.suply: unknown field; did you mean `supply`?")
    assert "did you mean `monsoon`?" in found[3] and found[3].startswith("7:")


@pytest.mark.parametrize(
    ("supply", "told"),
    [
        ("{}", "give exactly one of `uhubctl` (location, port) and `command` (cut, restore)"),
        ("{uhubctl: {location: 1-1, port: 1}, command: {cut: [a], restore: [b]}}", "give exactly one"),
        ("{command: {cut: [a]}}", "devices.A.supply.command.restore: this field is required"),
        ("{command: {cut: [], restore: [b]}}", "devices.A.supply.command.cut"),
        ("{command: {cut: [a, off], restore: [b]}}", "put it in quotes"),
    ],
)
def test_supply_has_one_whole_way(supply: str, told: str) -> None:
    assert any(told in each for each in problems(f"devices: {{A: {{supply: {supply}}}}}"))


def test_only_one_meter() -> None:
    assert "devices.A.meter" in problems("devices: {A: {meter: {monsoon: {}, csv: {}}}}")[0]


def test_where_the_file_is(tmp_path: Path) -> None:
    assert load_wiring(Settings(state=tmp_path).wiring_file).devices == {}
    (tmp_path / "wiring.yaml").write_text(GOOD)
    assert len(load_wiring(Settings(state=tmp_path).wiring_file).devices) == 2
    with pytest.raises(SpecError, match=r"away\.yaml: cannot be read"):
        load_wiring(Settings(state=tmp_path, wiring=tmp_path / "away.yaml").wiring_file)


def test_empty_file_is_told() -> None:
    assert "a wiring file is a mapping" in problems("")[0]
