"""Gates open and close at their thresholds; what the device does not tell is no obstacle."""

from __future__ import annotations

import pytest

from orchestrator.errors import ConditionNotMet, Unsupported
from orchestrator.model.device import DeviceState, Health
from orchestrator.model.experiment import Conditions
from workers.conditions.airplane_mode import AirplaneMode
from workers.device.adb import AdbConnection, AdbServer
from workers.session import check_gates

WANTED = Conditions.model_validate(
    {
        "battery_percent": {"min": 30, "max": 80},
        "battery_temp_max": "35 C",
        "thermal_status_max": 1,
        "free_storage": "1 GiB",
    }
)
GOOD = DeviceState(
    health=Health.READY, battery_percent=50, battery_temp_c=35.0, thermal_status=1, free_storage_bytes=1 << 30
)


def test_all_is_well_at_the_thresholds() -> None:
    check_gates("p", GOOD, WANTED)
    check_gates("p", GOOD.model_copy(update={"battery_percent": 30}), WANTED)
    check_gates("p", GOOD.model_copy(update={"battery_percent": 80}), WANTED)


def test_what_is_unknown_is_no_obstacle() -> None:
    check_gates("p", DeviceState(health=Health.READY), WANTED)


@pytest.mark.parametrize(
    ("change", "words", "retry_after_s"),
    [
        ({"battery_percent": 20.0}, "below 30 %", 600.0),
        ({"battery_percent": 90.0}, "above 80 %", 1200.0),
        ({"battery_temp_c": 40.0}, "above 35 C", 300.0),
        ({"thermal_status": 3}, "thermal status 3", 120.0),
        ({"free_storage_bytes": 5 << 20}, "5 MiB of storage", 600.0),
    ],
)
def test_each_gate(change: dict[str, float], words: str, retry_after_s: float) -> None:
    with pytest.raises(ConditionNotMet, match=words) as caught:
        check_gates("p", GOOD.model_copy(update=change), WANTED)
    assert caught.value.retry_after_s == retry_after_s
    assert caught.value.device == "p" and caught.value.remedy


def test_everything_unmet_is_told_at_once() -> None:
    bad = GOOD.model_copy(update={"battery_percent": 10.0, "battery_temp_c": 50.0})
    with pytest.raises(ConditionNotMet) as caught:
        check_gates("p", bad, WANTED)
    assert "battery at 10 %" in str(caught.value) and "battery at 50 C" in str(caught.value)
    assert caught.value.retry_after_s == 1200.0


def test_a_phone_over_wi_fi_keeps_its_radio() -> None:
    with pytest.raises(Unsupported, match="cut the network"):
        AirplaneMode().prepare(AdbConnection("192.168.1.20:5555", AdbServer(1)))
