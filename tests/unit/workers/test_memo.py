from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernels.errors import checkpoint, interruptible
from workers.engines.models.single_flight_cache import SingleFlightCache


def test_many_ask_one_makes() -> None:
    memo: SingleFlightCache[int] = SingleFlightCache(2)
    made, all_here = [], threading.Barrier(8)

    def make() -> int:
        made.append(1)
        return 7

    def ask(_: int) -> int:
        all_here.wait(5)
        return memo.get("key", make)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [7] * 8
    assert made == [1]


def test_the_oldest_goes() -> None:
    memo: SingleFlightCache[int] = SingleFlightCache(2)
    for key in (1, 2, 1, 3):
        memo.get(key, lambda key=key: key)
    assert memo.get(1, lambda: 100) == 1
    assert memo.get(2, lambda: 200) == 200


def test_a_failure_is_not_kept() -> None:
    memo: SingleFlightCache[int] = SingleFlightCache(2)
    with pytest.raises(ZeroDivisionError):
        memo.get("k", lambda: 1 // 0)
    assert memo.get("k", lambda: 5) == 5


class Stopped(Exception):
    pass


def test_one_who_leaves_stops_nobody_else() -> None:
    """One leaves who was making the value, which another then begins anew, and one who was waiting for it."""
    memo: SingleFlightCache[str] = SingleFlightCache(2)
    begun, leave_maker, leave_waiter, finish = (threading.Event() for _ in range(4))
    made: list[str] = []

    def ask(name: str, leave: threading.Event) -> str:
        def check() -> None:
            if leave.is_set():
                raise Stopped(name)

        def make() -> str:
            made.append(name)
            begun.set()
            while not finish.wait(0.01):
                checkpoint()
            return name

        with interruptible(check):
            return memo.get("key", make)

    with ThreadPoolExecutor(3) as pool:
        maker = pool.submit(ask, "maker", leave_maker)
        assert begun.wait(60)
        waiters = [pool.submit(ask, name, leave) for name, leave in (("a", leave_waiter), ("b", threading.Event()))]
        leave_waiter.set()
        with pytest.raises(Stopped, match="a"):
            waiters[0].result(60)
        assert made == ["maker"] and not maker.done(), "who makes it goes on"
        begun.clear()
        leave_maker.set()
        with pytest.raises(Stopped, match="maker"):
            maker.result(60)
        assert begun.wait(60), "who waits for it begins anew"
        finish.set()
        assert waiters[1].result(60) == "b"
    assert made == ["maker", "b"]
