"""Clock maps on artificial clocks: offset, drift, delays that are not the same both ways."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.model.power import ClockMap
from workers.connection.base import ShellResult
from workers.power import clock_mapping
from workers.power.clock_mapping import (
    ANCHOR_ROUND_TRIPS,
    ROUND_TRIPS,
    RoundTrip,
    ahead_s,
    ask_round_trips,
    fit,
    host_clock,
)


def trips(random_: random.Random, at_ns: int, truth: ClockMap, slowest_ns: int, step_ns: int = 0) -> list[RoundTrip]:
    """Round trips over a line whose two ways take what they like."""
    made = []
    for _ in range(ROUND_TRIPS):
        there, back = (random_.randrange(100_000, slowest_ns) for _ in range(2))
        device_ns = truth.to_device(at_ns + there)
        made.append(
            RoundTrip(at_ns, device_ns - device_ns % step_ns if step_ns else device_ns, at_ns + there + back, step_ns)
        )
        at_ns += there + back + 1_000
    return made


@given(
    seed=st.integers(0, 2**32),
    offset_ns=st.integers(-(10**15), 10**15),
    skew=st.floats(-1e-4, 1e-4),
    slowest_ns=st.sampled_from([1_000_000, 30_000_000, 200_000_000]),
    step_ns=st.sampled_from([0, 10_000_000]),
)
def test_every_moment_of_the_window_is_within_the_residual(
    seed: int, offset_ns: int, skew: float, slowest_ns: int, step_ns: int
) -> None:
    random_ = random.Random(seed)
    truth = ClockMap(offset_ns=offset_ns + 10**16, drift=skew, reference_ns=10**12)
    before = trips(random_, 10**12, truth, slowest_ns, step_ns)
    after = trips(random_, 10**12 + 60 * 10**9, truth, slowest_ns, step_ns)
    found = fit(before, after)
    assert found.round_trips == 2 * ROUND_TRIPS
    for host_ns in range(before[-1].got_ns, after[0].sent_ns, 5 * 10**9):
        assert abs(found.to_device(host_ns) - truth.to_device(host_ns)) <= found.residual_ns + 1_000


def test_the_shortest_round_trip_wins() -> None:
    slow, quick = RoundTrip(0, 1_000_000, 900_000), RoundTrip(2_000_000, 2_510_000, 2_020_000)
    found = fit([slow, quick, slow], ())
    assert (found.offset_ns, found.residual_ns, found.drift) == (500_000, 10_000, 0.0)


def test_a_skew_of_the_clock_is_found() -> None:
    truth = ClockMap(offset_ns=5 * 10**9, drift=2e-4)
    found = fit(*(trips(random.Random(1), at, truth, 300_000) for at in (0, 120 * 10**9)))
    assert found.drift == pytest.approx(2e-4, rel=0.02)


def test_without_any_round_trip_there_is_no_map() -> None:
    with pytest.raises(ValueError, match="no round trips"):
        fit([], [])


def test_this_hosts_own_clock_is_known_well() -> None:
    assert host_clock().residual_ns < 1_000_000


def test_a_thread_that_waits_while_it_reads_two_clocks_moves_neither(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, now_ns = random.Random(seed), [10**12]
    waits = [(chance.randrange(10**8), chance.randrange(10**8)) for _ in range(ANCHOR_ROUND_TRIPS - 1)]
    waits.insert(chance.randrange(len(waits)), (0, 0))  # never the first that is asked

    def clock_ns() -> int:
        before_ns, behind_ns = waits.pop()
        now_ns[0] += before_ns + behind_ns
        return now_ns[0] - behind_ns + 5 * 10**9

    monkeypatch.setattr(clock_mapping, "time", SimpleNamespace(monotonic_ns=lambda: now_ns[0]))
    assert ahead_s(clock_ns) == pytest.approx(5.0, abs=1e-9)
    assert not waits


class _Phone:
    """A shell that knows /proc/uptime, and perhaps an agent that tells its clock."""

    serial = "phone"

    def __init__(self, agent: bytes, uptime: bytes) -> None:
        self._said = {"agent": agent, "cat": uptime}

    def shell(self, argv: list[str], *, deadline_s: float = 10.0) -> ShellResult:
        said = self._said[argv[0]]
        return ShellResult(0 if said else 1, said, b"")


def test_an_agent_that_does_not_tell_its_clock() -> None:
    from orchestrator.model.errors import DeviceSick
    from workers.power.clock_mapping import clock_of

    new = clock_of(_Phone(b'{"boottime_ns": 12345}', b""), "agent")  # type: ignore[arg-type]
    assert new() == (12345, 0)
    old = clock_of(_Phone(b'{"agent_version": "0.1"}', b"31.42 60.1\n"), "agent")  # type: ignore[arg-type]
    assert old() == (31_420_000_000, 10_000_000)
    assert len(ask_round_trips(old)) == ROUND_TRIPS
    with pytest.raises(DeviceSick, match="uptime"):
        clock_of(_Phone(b"", b""), "agent")()  # type: ignore[arg-type]
