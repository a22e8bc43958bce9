"""adbutils, the library that the farm's workers use, against virtual phones."""

from __future__ import annotations

from pathlib import Path
from random import Random

import adbutils
import pytest

from tests.waiting import LIMIT_S
from virtual_phones.control import PhoneStatus

from .conftest import TMP, Adb


@pytest.fixture
def device(adb: Adb, phone: PhoneStatus) -> adbutils.AdbDevice:
    return adbutils.AdbClient(host="127.0.0.1", port=adb.port, socket_timeout=LIMIT_S).device(phone.serial)


def test_shell_version_2(device: adbutils.AdbDevice) -> None:
    result = device.shell2("echo a; echo b >&2; exit 3", v2=True, timeout=LIMIT_S)
    assert (result.returncode, result.stdout, result.stderr) == (3, "a\n", "b\n")


def test_shell_version_1(device: adbutils.AdbDevice) -> None:
    assert device.shell(["echo", "a b", "$HOME"]) == "a b $HOME"
    result = device.shell2("false", timeout=LIMIT_S)
    assert result.returncode == 1


def test_sync(device: adbutils.AdbDevice, tmp_path: Path, seed: int) -> None:
    content = Random(seed).randbytes(1_000_003)
    assert device.sync.push(content, f"{TMP}/by_adbutils", mode=0o755, check=True) == len(content)
    facts = device.sync.stat(f"{TMP}/by_adbutils")
    assert (facts.size, facts.mode) == (len(content), 0o100755)
    assert device.sync.read_bytes(f"{TMP}/by_adbutils") == content
    assert "by_adbutils" in {entry.path for entry in device.sync.list(TMP)}
    device.sync.pull(f"{TMP}/by_adbutils", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    assert not device.sync.exists(f"{TMP}/missing")
    with pytest.raises(adbutils.AdbError, match="No such file"):
        device.sync.read_bytes(f"{TMP}/missing")
    device.shell(["rm", f"{TMP}/by_adbutils"])


def test_properties(device: adbutils.AdbDevice) -> None:
    assert (device.prop.model, device.prop.device) == ("SM-G930V", "heroqltevzw")
    assert device.getprop("ro.pocketfarm.source") == "virtual"
