"""Profiles on disk: versions, builds, what cannot be read."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.model.enrolment import Enrolment
from orchestrator.model.power import GaugeCalibration
from workers.enrolment import store

SERIAL = "127.0.0.1:5555"


def profile(at: float = 1.0, fingerprint: str = "google/a:14", **more: object) -> Enrolment:
    return Enrolment(serial=SERIAL, fingerprint=fingerprint, enrolled_at=at, **more)  # type: ignore[arg-type]


def test_each_enrolment_is_a_version(tmp_path: Path) -> None:
    assert store.load(tmp_path, SERIAL, "google/a:14") is None
    assert store.save(tmp_path, profile()).version == 1
    assert store.save(tmp_path, profile(gauge=GaugeCalibration())).version == 2
    found = store.load(tmp_path, SERIAL, "google/a:14")
    assert found is not None and (found.version, found.calibrated) == (2, True)


def test_another_build_is_another_profile(tmp_path: Path) -> None:
    store.save(tmp_path, profile(at=5.0))
    assert store.load(tmp_path, SERIAL, "google/b:15") is None
    assert store.save(tmp_path, profile(at=9.0, fingerprint="google/b:15")).version == 1
    newest = store.newest(tmp_path, SERIAL)
    assert newest is not None and newest.fingerprint == "google/b:15"
    assert store.newest(tmp_path, "another") is None


def test_few_versions_are_kept(tmp_path: Path) -> None:
    for _ in range(store.KEPT + 7):
        store.save(tmp_path, profile())
    kept = sorted(int(path.name.split(".v")[1].split(".")[0]) for path in tmp_path.rglob("*.json"))
    assert kept == list(range(8, store.KEPT + 8))


def test_a_damaged_file_gives_way_to_the_one_before(tmp_path: Path) -> None:
    store.save(tmp_path, profile(at=1.0))
    store.save(tmp_path, profile(at=2.0))
    (newest,) = tmp_path.rglob("*.v2.json")
    newest.write_text("{")
    found = store.load(tmp_path, SERIAL, "google/a:14")
    assert found is not None and found.enrolled_at == 1.0
    assert store.save(tmp_path, profile()).version == 3, "numbers are not given twice"


def test_the_nodes_of_a_phone_take_little_memory() -> None:
    """Four processes hold the profiles of 400 phones."""
    nodes = [{"path": f"/sys/class/power_supply/battery/node_{number}", "value": str(number)} for number in range(500)]
    text = json.dumps({"serial": "A", "fingerprint": "b", "enrolled_at": 1.0, "nodes": nodes})
    Enrolment.model_validate_json(text)
    tracemalloc.start()
    found = Enrolment.model_validate_json(text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.nodes) == 500 and Enrolment.model_validate_json(found.model_dump_json()) == found
    assert taken / 500 < 200, "460 as models"
    with pytest.raises(ValidationError):
        Enrolment.model_validate_json(text.replace('"value"', '"worth"'))
    assert Enrolment.model_validate_json(text.replace('"value"', '"worth"'), extra="ignore").nodes[0].value == ""
