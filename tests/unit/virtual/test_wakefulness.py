"""The times when a virtual phone's screen goes off, and when its kernel suspends."""

from __future__ import annotations

from typing import Any

import pytest

from virtual_phones.system.wakefulness import LINGER_S, Wakefulness

pytestmark = pytest.mark.unit


def at(phone: Wakefulness, now_s: float, **more: Any) -> tuple[bool, bool]:
    """Return whether it is awake, and whether it is suspended."""
    phone.advance(now_s, **{"off_after_s": 30.0, "stays_on": False, "powered": False} | more)
    return phone.is_awake, phone.is_suspended


def test_the_screen_goes_off_and_the_kernel_with_it_until_somebody_wakes_it() -> None:
    phone = Wakefulness(0.0)
    assert at(phone, 29.0) == (True, False)
    assert at(phone, 31.0) == (False, True)
    assert at(phone, 41.0) == (False, True) and phone.suspended_s == 0.0, "told when it goes on"
    phone.wake(41.0)
    assert at(phone, 41.0) == (True, False) and phone.suspended_s == 10.0


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"off_after_s": 2147483.0}, (True, False)),
        ({"stays_on": True, "powered": True}, (True, False)),
        ({"powered": True}, (False, False)),
    ],
)
def test_what_keeps_it_up(settings: dict[str, Any], found: tuple[bool, bool]) -> None:
    assert at(Wakefulness(0.0), 3600.0, **settings) == found


def test_a_command_over_adb_keeps_the_kernel_up_and_not_the_screen() -> None:
    phone = Wakefulness(0.0)
    phone.press_power(0.0)
    phone.stream_opened()
    assert at(phone, 5.0) == (False, False)
    phone.stream_closed(6.0)
    assert at(phone, 6.0 + LINGER_S / 2) == (False, False)
    assert at(phone, 6.0 + 2 * LINGER_S) == (False, True)
