"""Answers that cost much: who asks waits for one only where there is none. The clock is the test's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest

from dashboards.answers import shared
from tests.waiting import eventually

LIMIT_S = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def makes(self, value: str, took_s: float = 1.0) -> Callable[[], str]:
        def make() -> str:
            self.now += took_s
            return value

        return make


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(shared, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def test_who_asks_does_not_wait_for_the_next_nor_for_another_key(clock: Clock) -> None:
    """The old one is given while one is made, and so are those of other keys."""
    kept, begun, going = shared.Shared[str](20.0), Event(), Event()

    def late() -> str:
        begun.set()
        assert going.wait(LIMIT_S)
        return clock.makes("new")()

    assert kept.of("a", clock.makes("old")) == "old" and kept.of("b", clock.makes("other", 5.0)) == "other"
    clock.now = 30.0
    assert kept.of("a", late) == "old" and begun.wait(LIMIT_S)
    assert kept.of("a", clock.makes("never")) == "old" and kept.of("b", clock.makes("never")) == "other"
    going.set()
    eventually(lambda: kept.of("a", clock.makes("never")) == "new")


def test_what_is_too_old_is_made_at_once_by_one_of_all(clock: Clock) -> None:
    kept, made = shared.Shared[str](20.0), list[int]()

    def once() -> str:
        made.append(1)
        return clock.makes("new")()

    assert kept.of("a", clock.makes("old")) == "old"
    clock.now = 42.0
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: kept.of("a", once), range(8))) == {"new"}
    assert len(made) == 1


def test_a_failure_behind_the_scenes_is_met_by_who_finds_nothing(clock: Clock) -> None:
    kept, failed = shared.Shared[str](20.0), Event()

    def fails() -> str:
        failed.set()
        raise OSError("gone")

    assert kept.of("a", clock.makes("old")) == "old"
    clock.now = 30.0
    assert kept.of("a", fails) == "old" and failed.wait(LIMIT_S)
    clock.now = 42.0
    with pytest.raises(OSError, match="gone"):
        kept.of("a", fails)
