"""The real adb command line against virtual phones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.waiting import LIMIT_S
from virtual_phones.control import PhoneStatus
from virtual_phones.launch import VirtualPhones

from .conftest import TMP, Adb, eventually


def test_every_phone_is_listed_with_its_model(adb_port: int, phones: VirtualPhones) -> None:
    listing = Adb(adb_port)("devices", "-l").stdout.decode()
    for serial, model in zip(phones.serials, ("SM_G930V", "Nexus_5", "Pixel_7", "SD888_HDK"), strict=True):
        (row,) = [line for line in listing.splitlines() if line.startswith(f"{serial} ")]
        assert " device product:" in row
        assert f" model:{model} " in row


@pytest.mark.parametrize("second", [True, False], ids=["shell,v2", "shell"])
def test_shell_protocols(adb: Adb, second: bool) -> None:
    done = adb("shell", *([] if second else ["-x"]), "echo out; echo err >&2; exit 7")
    if second:
        assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, b"out\nerr\n", b"")


def test_features_are_those_of_an_adbd_without_compression(adb: Adb) -> None:
    features = adb("features").stdout.split()
    assert {b"shell_v2", b"cmd", b"stat_v2"} <= set(features)
    assert not any(feature.startswith(b"sendrecv_v2_") for feature in features)


def test_twenty_megabytes_there_and_back(adb: Adb, tmp_path: Path, seed: int) -> None:
    content = Random(seed).randbytes(20_000_000)
    (tmp_path / "there").write_bytes(content)
    assert b"1 file pushed" in adb("push", str(tmp_path / "there"), f"{TMP}/new/folder/big").stdout
    assert adb.shell(f"sha256sum {TMP}/new/folder/big").split()[0] == hashlib.sha256(content).hexdigest()
    assert b"1 file pulled" in adb("pull", f"{TMP}/new/folder/big", str(tmp_path / "back")).stdout
    assert (tmp_path / "back").read_bytes() == content
    assert adb("exec-out", f"cat {TMP}/new/folder/big").stdout == content
    adb.shell(f"rm -r {TMP}/new")


def test_folders_modes_and_links(adb: Adb, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "run").write_text("#!/bin/sh\n")
    (source / "deep" / "run").chmod(0o755)
    (source / "empty").write_bytes(b"")
    assert adb("push", str(source), f"{TMP}/").returncode == 0
    assert adb.shell(f"stat -c '%a %n' {TMP}/source/deep/run") == f"755 {TMP}/source/deep/run\n"
    adb.shell(f"ln -s {TMP}/source/deep {TMP}/source/link")
    listing = adb("ls", f"{TMP}/source").stdout.decode()
    assert {line.split()[-1] for line in listing.splitlines()} >= {"deep", "empty", "link"}
    assert adb("pull", f"{TMP}/source", str(tmp_path / "copy")).returncode == 0
    assert (tmp_path / "copy" / "deep" / "run").read_text() == "#!/bin/sh\n"
    adb.shell(f"rm -r {TMP}/source")


def test_standard_input_reaches_the_command(adb: Adb) -> None:
    content = bytes(range(256)) * 5000
    assert adb("shell", "sha256sum -b", stdin=content).stdout.decode().strip() == hashlib.sha256(content).hexdigest()
    assert adb("exec-in", f"cat > {TMP}/in", stdin=content).returncode == 0
    eventually(lambda: adb.shell(f"wc -c {TMP}/in").split()[0] == str(len(content)))


def test_a_session_without_a_command(adb: Adb) -> None:
    done = adb("shell", "-T", stdin=b"cd /data/local\npwd\nfalse\nexit\n")
    assert b"/data/local\n" in done.stdout
    assert done.returncode == 1


def test_what_a_phone_does_not_offer_is_refused(adb: Adb) -> None:
    for service in (["root"], ["remount"], ["jdwp"]):
        assert adb(*service).stdout.strip() != b"restarting adbd as root"
    assert adb("shell", "true").returncode == 0


def test_a_refused_push_says_why(adb: Adb, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    done = adb("push", str(tmp_path / "x"), "/system/x")
    assert done.returncode == 1
    assert b"Read-only file system" in done.stdout + done.stderr
    missing = adb("pull", f"{TMP}/missing", str(tmp_path / "y"))
    assert missing.returncode == 1
    assert b"No such file" in missing.stdout + missing.stderr


def test_programs_are_real_and_stream(adb: Adb, program: Callable[[str], str], phone: PhoneStatus) -> None:
    go = phone.root / TMP.lstrip("/") / "go"
    path = program('echo first; until [ -e "$1" ]; do sleep 0.05; done; echo "$1" >&2; exit 5')
    process = adb.popen("shell", f"{path} {TMP}/go")
    assert process.stdout
    assert process.stdout.readline() == b"first\n"
    assert process.poll() is None  # it still waits: lines arrive as they are written
    go.touch()
    _, errors = process.communicate(timeout=LIMIT_S)
    go.unlink()
    assert (process.returncode, errors) == (5, f"{phone.root}{TMP}/go\n".encode())


def test_ending_adb_hangs_up_the_program_but_not_its_detached_child(adb: Adb, program: Callable[[str], str]) -> None:
    path = program(f"setsid sleep 31 > /dev/null 2>&1 < /dev/null & echo ready; sleep 32; touch {TMP}/never")
    process = adb.popen("shell", path)
    assert process.stdout
    process.stdout.readline()
    process.terminate()
    process.communicate(timeout=LIMIT_S)
    eventually(lambda: "program" not in adb("shell", "ps -A -o ARGS").stdout.decode())
    assert adb("shell", "pgrep -f 'sleep 31'").returncode == 0
    adb.shell("pkill -9 -f sleep")
    eventually(lambda: adb("shell", "pidof sleep").returncode == 1)
