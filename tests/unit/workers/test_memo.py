from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from workers.memo import Memo


def test_many_ask_one_makes() -> None:
    memo: Memo[int] = Memo(2)
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
    memo: Memo[int] = Memo(2)
    for key in (1, 2, 1, 3):
        memo.get(key, lambda key=key: key)
    assert memo.get(1, lambda: 100) == 1
    assert memo.get(2, lambda: 200) == 200


def test_a_failure_is_not_kept() -> None:
    memo: Memo[int] = Memo(2)
    with pytest.raises(ZeroDivisionError):
        memo.get("k", lambda: 1 // 0)
    assert memo.get("k", lambda: 5) == 5
