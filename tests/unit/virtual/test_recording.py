"""Recordings: checked at the boundary, interpolated, and linked to the phone that replays them."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path

import pytest

from virtual_phones.phone import Phone
from virtual_phones.profile import load_model
from virtual_phones.replay.player import Player
from virtual_phones.replay.recording import load_recording
from virtual_phones.replay.run import Run, is_stable
from virtual_phones.replay.times import Times, times_of
from virtual_phones.system.processes import ProcessTable

TEXT = """
profile: nexus_5
origin: made up for a test
idle_w: 0.3
networks:
  lenet:
    latency_ms: [12.5, 10]
    power: {time_s: [0, 1, 2], power_w: [1.0, 3.0, 2.0]}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "recording.yaml"
    path.write_text(TEXT)
    return path


def test_power_is_interpolated_and_begins_again(file: Path) -> None:
    power = load_recording(file).networks["lenet"].power
    assert [power.at(t) for t in (0, 0.5, 1, 1.5, 2.5)] == [1.0, 2.0, 3.0, 2.5, 2.0]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[0, 1, 2]", "[0, 2, 1]", "rise"),
        ("[0, 1, 2]", "[1, 2, 3]", "rise"),
        ("[0, 1, 2]", "[0, 1]", "2 times for 3 readings"),
        ("[12.5, 10]", "[]", "latency_ms"),
        ("[12.5, 10]", "[-1]", "latency_ms"),
        ("origin: made up for a test", "", "origin"),
    ],
)
def test_a_wrong_recording_is_refused_with_its_name(file: Path, old: str, new: str, complaint: str) -> None:
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(ValueError, match=rf"recording\.yaml(.|\n)*{complaint}"):
        load_recording(file)


def test_a_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing"):
        load_model(f"replay:{tmp_path / 'nothing.yaml'}")


def test_such_a_phone_is_labelled_wherever_it_says_what_it_is(file: Path, tmp_path: Path) -> None:
    phone = Phone(load_model(f"replay:{file}"), 0, tmp_path / "phone", ProcessTable(), None)
    assert phone.serial == "replay-nexus_5-0"
    assert phone.properties["ro.pocketfarm.source"] == "replay"
    assert ":replay/" in phone.properties["ro.build.fingerprint"]
    assert phone.profile.power.idle_w == 0.3


def test_its_power_is_the_recorded_one_while_an_agent_replays(file: Path, tmp_path: Path) -> None:
    phone = Phone(load_model(f"replay:{file}"), 0, tmp_path / "phone", ProcessTable(), None)
    phone.other_load = 0.5  # what this machine does meanwhile
    phone.tick(1.0, [])
    assert phone.body.device_w == 0.3
    assert phone.player
    phone.player.folder.joinpath("running.json").write_text(
        json.dumps({"network": "lenet", "since_ns": 10**30, "pid": os.getpid()})
    )
    phone.tick(1.0, [])
    assert phone.body.device_w == 1.0  # at the trace's beginning
    before = phone.body.consumed_j
    phone.tick(2.0, [])
    assert phone.body.consumed_j - before == pytest.approx(2.0)


def test_an_agent_that_was_killed_draws_no_more(file: Path, tmp_path: Path) -> None:
    player = Player(load_recording(file), tmp_path)
    running = tmp_path / "running.json"
    running.write_text(json.dumps({"network": "lenet", "since_ns": 0, "pid": 2**22 + 1}))
    assert player.power_w(1) == 0.3
    running.write_text(json.dumps({"network": "lenet", "since_ns": 0, "pid": os.getpid()}))
    assert player.power_w(500_000_000) == 2.0


@pytest.mark.parametrize("goes_on", [True, False])
def test_runs_go_on_in_the_recording_where_it_says_so(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    recording = load_recording(file).model_copy(update={"goes_on": goes_on})
    Player(recording, tmp_path / "replay")
    monkeypatch.setenv("POCKETFARM_REPLAY", str(tmp_path / "replay"))
    plan = tmp_path / "plan"
    plan.mkdir()
    (plan / "plan.json").write_text('{"name": "lenet"}')

    def played() -> list[float]:
        run = Run("agent", ["--plan", str(plan)])
        taken = [ns / 1e6 for ns in islice(run._latencies(), 3)]
        run._note_played()
        return taken

    assert played() == [12.5, 10.0, 12.5]
    assert played() == ([10.0, 12.5, 10.0] if goes_on else [12.5, 10.0, 12.5])


def test_stability_is_the_agent_s() -> None:
    assert not is_stable([100] * 4, 0.02)
    assert is_stable([500, 100, 101, 100, 101, 100], 0.02)
    assert not is_stable([100, 101, 100, 101, 103], 0.02)


def test_a_layer_that_was_not_recorded_has_no_time() -> None:
    """The real agent's are of this host, and would stand in a phone's name."""
    told = [{"event": "layer", "layer": name, "duration_ns": 7} for name in ("conv1", "pool1")]
    output = {"event": "output", "name": "prob"}

    def replayed(**layers: list[float]) -> list[dict[str, object]]:
        return list(Times("lenet", -1, [12.5], layers).replaying([*told, output]))

    assert replayed() == [output]
    assert replayed(conv1=[5.5]) == [{**told[0], "duration_ns": 5_500_000}, output]


def test_a_sum_of_some_layers_names_those_that_it_lacks() -> None:
    plan = {"name": "lenet", "api": "cpu", "steps": [{"layer": name} for name in ("conv1", "pool1", "pool1", "ip1")]}
    cell = {"at": {"api": "cpu"}, "latency_ms": [], "layers": {"conv1": [5.0], "pool1": [2.0, 4.0]}}

    def played(cell: dict[str, object], **network: bool) -> Times:
        return times_of(plan, {"lenet": {"latency_ms": [], "cells": [cell], **network}})

    assert (played(cell).latency_ms, played(cell).missing) == ([8.0], ("ip1",))
    assert played(cell, layers_are_all=True).missing == played({**cell, "latency_ms": [9.0]}).missing == ()
