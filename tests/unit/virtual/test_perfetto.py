"""perfetto of a virtual phone: a trace of its rails, as `workers/power/perfetto.py` asks for one and reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.energy.perfetto_trace import rails_of_trace
from virtual_phones.phone import Phone
from virtual_phones.profile import load_profile
from virtual_phones.system.processes import ProcessTable
from workers.power.perfetto import CONFIG, TRACES

from .conftest import Sh

START = f"cat /data/local/tmp/config | perfetto --background -c - --txt -o {TRACES}/t"


@pytest.fixture
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Phone:
    """A Pixel 7, with power rails that its shell may not read, unless a test names another model."""
    return Phone(load_profile(getattr(request, "param", "pixel_7")), 0, tmp_path / "phone", ProcessTable(), None)


def configure(phone: Phone, text: str = CONFIG) -> None:
    (phone.tree.root / "data/local/tmp/config").write_text(text)


def test_rails_are_recorded_until_it_is_ended(sh: Sh, phone: Phone) -> None:
    configure(phone)
    script = f"P=$({START}); sleep 0.4; kill -0 $P && kill -TERM $P; sleep 0.1; kill -0 $P || echo ended"
    assert sh(script).out == "ended\n"
    rails = rails_of_trace((phone.tree.root / TRACES[1:] / "t").read_bytes())
    shares = {name: share for monitor in phone.profile.odpm for name, share in monitor.rails.items()}
    assert rails.keys() == shares.keys()
    for name, readings in rails.items():
        times, energies = zip(*readings, strict=True)
        assert len(readings) >= 2 and list(times) == sorted(set(times)) and list(energies) == sorted(energies)
        assert energies[-1] == pytest.approx(shares[name] * phone.body.consumed_j * 1e6, rel=0.5)
    assert sh(f"rm -f {TRACES}/t; ls {TRACES}").out == ""


@pytest.mark.parametrize("phone", ["galaxy_s24"], indirect=True)
def test_a_phone_without_rails_records_none(sh: Sh, phone: Phone) -> None:
    configure(phone)
    sh(f"kill -TERM $({START})")
    assert rails_of_trace((phone.tree.root / TRACES[1:] / "t").read_bytes()) == {}


@pytest.mark.parametrize("phone", ["galaxy_s7"], indirect=True)
def test_android_8_has_no_perfetto(sh: Sh) -> None:
    assert sh("command -v perfetto").code == 127
    assert "perfetto: inaccessible or not found" in sh("perfetto").err


def test_what_it_does_not_record_is_refused(sh: Sh, phone: Phone) -> None:
    configure(phone, "data_sources {}")
    assert "records power rails only" in sh(START).err
    assert "--background -c - --txt -o FILE" in sh("perfetto --query").err
