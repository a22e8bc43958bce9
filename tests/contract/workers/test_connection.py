"""The promises that every `DeviceConnection` keeps, whatever the transport."""

from __future__ import annotations

import hashlib
import random
import time
from pathlib import Path

import pytest

from orchestrator.model.errors import DeviceSick, DeviceSlow, TransportLost, Unsupported
from tests.phones import start_phones
from tests.servers import PrivateAdb, required
from virtual_phones.faults import SlowCommands
from virtual_phones.launch import VirtualPhones
from workers.connection.adb import AdbConnection, AdbServer
from workers.connection.adb import connection as adb_connection
from workers.connection.base import DeviceConnection, ShellResult

NASTY = [
    "two  blanks",
    "",
    "'single'",
    '"double"',
    "$HOME `id` $(id)",
    "back\\slash \\n",
    "new\nline",
    "tab\t",
    "* ? [a-z] ~ {a,b}",
    "; rm -rf /nowhere & | > < # !",
    "Grüße 電話",
    "--option",
]


def test_exit_code_and_both_streams(connection: DeviceConnection) -> None:
    result = connection.shell(["sh", "-c", "echo out; echo err >&2; exit 7"])
    assert result == ShellResult(7, b"out\n", b"err\n")


def test_several_commands_are_told_apart(connection: DeviceConnection) -> None:
    commands = [
        ["sh", "-c", "printf 'no newline'"],
        ["sh", "-c", "echo complains >&2; exit 7"],
        ["sh", "-c", "printf '1; 0;\\n'; printf 'x;' >&2"],
        ["cat"],
        ["sh", "-c", r"printf '\0\0'; exit 255"],
    ]
    assert connection.shells(commands) == [
        ShellResult(0, b"no newline", b""),
        ShellResult(7, b"", b"complains\n"),
        ShellResult(0, b"1; 0;\n", b"x;"),
        ShellResult(0, b"", b""),
        ShellResult(255, b"\0\0", b""),
    ]
    lost, after = connection.shells([["no-such-command-here"], ["echo", "on"]])
    assert lost.code == 127
    assert b"not found" in lost.stderr
    assert after == ShellResult(0, b"on\n", b"")
    assert connection.shells([]) == []


@pytest.mark.parametrize("code", [0, 1])
def test_what_lies_behind_a_guard_is_run_where_it_succeeds(connection: DeviceConnection, code: int) -> None:
    echoes = [["echo", each] for each in ("a", "b", "c")]
    file = f"{connection.folder}/behind-{code}"
    commands = [*echoes[:2], ["sh", "-c", f"exit {code}"], ["mkdir", "-p", file], echoes[2], ["sh", "-c", "exit 3"]]
    found = connection.shells(commands, guard=2)
    assert [each.stdout for each in found[:2]] == [b"a\n", b"b\n"]
    behind = [ShellResult(0, b"", b""), ShellResult(0, b"", b""), ShellResult(0, b"c\n", b""), ShellResult(3, b"", b"")]
    assert found[2:] == ([] if code else behind)
    assert (connection.shell(["ls", "-d", file]).code == 0) == (code == 0)


@pytest.mark.parametrize("code", [0, 1, 126, 255])
def test_any_exit_code(connection: DeviceConnection, code: int) -> None:
    assert connection.shell(["sh", "-c", f"exit {code}"]).code == code


def test_unknown_command(connection: DeviceConnection) -> None:
    result = connection.shell(["no-such-command-here"])
    assert result.code == 127
    assert b"not found" in result.stderr


@pytest.mark.parametrize("text", NASTY)
def test_arguments_arrive_as_they_are(connection: DeviceConnection, text: str) -> None:
    assert connection.shell(["printf", "%s|%s|%s|", "x", text, "y"]).stdout.decode() == f"x|{text}|y|"


def test_a_command_never_waits_for_input(connection: DeviceConnection) -> None:
    assert connection.shell(["cat"], deadline_s=60.0).stdout == b""


def test_large_output_is_whole(connection: DeviceConnection, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(3_000_000)
    (tmp_path / "source").write_bytes(content)
    path = f"{connection.folder}/contract/large"
    connection.push(tmp_path / "source", path)
    assert connection.shell(["cat", path]).stdout == content


def test_the_deadline_bounds_the_whole_call(connection: DeviceConnection) -> None:
    started = time.monotonic()
    with pytest.raises(TransportLost) as caught:
        connection.shell(["sleep", "50"], deadline_s=0.5)
    assert time.monotonic() - started < 30
    assert caught.value.device == connection.serial
    assert "sleep 50" in str(caught.value)


def test_a_trickle_does_not_extend_the_deadline(connection: DeviceConnection) -> None:
    started = time.monotonic()
    with pytest.raises(TransportLost):
        connection.shell(["sh", "-c", "; ".join(["echo tick; sleep 0.2"] * 250)], deadline_s=0.7)
    assert time.monotonic() - started < 30


def test_a_device_that_is_there_but_does_not_end_is_slow(connection: DeviceConnection) -> None:
    with pytest.raises(DeviceSlow) as caught:
        connection.shell(["sleep", "50"], deadline_s=0.5)
    assert caught.value.cause == "slow" and "cable" not in str(caught.value)
    assert connection.shell(["echo", "on"]).stdout == b"on\n"


def test_the_deadline_of_a_batch_is_for_each_of_its_commands(
    phone: AdbConnection, running: tuple[PrivateAdb, VirtualPhones]
) -> None:
    """Each is slow, as on a phone where it starts a virtual machine; together they last longer than the deadline."""
    _, phones = running
    phones.control.fault("*", SlowCommands(each_s=0.2))
    began = time.monotonic()
    told = phone.shells([["cat", "/proc/uptime"]] * 10, deadline_s=3.0)
    assert [each.code for each in told] == [0] * 10 and time.monotonic() - began > 4.0
    phones.control.fault("*", SlowCommands(each_s=9.0))
    with pytest.raises(DeviceSlow, match="is slow"):
        phone.shells([["cat", "/proc/uptime"]] * 2, deadline_s=1.0)
    phones.control.clear()


def test_an_adbd_without_shell_v2_is_too_old_and_no_cable_is_blamed(
    running: tuple[PrivateAdb, VirtualPhones], tmp_path: Path
) -> None:
    profile = tmp_path / "old.yaml"
    profile.write_text('extends: nexus_5\nname: old\nandroid: "6.0.1"\nsdk: 23\n')
    server = AdbServer(running[0].port, required("adb"))
    with start_phones(tmp_path / "phones", [str(profile)]) as phones:
        server.connect(phones.serials[0])
        with pytest.raises(Unsupported, match="no shell v2") as caught:
            AdbConnection(phones.serials[0], server).shell(["getprop"])
        assert "Android 7 or newer" in str(caught.value) and "cable" not in str(caught.value)
    server.disconnect(phones.serials[0])


def test_push_and_pull(connection: DeviceConnection, tmp_path: Path) -> None:
    content = random.Random(2).randbytes(200_001)
    (tmp_path / "source").write_bytes(content)
    path = f"{connection.folder}/contract/a folder/file'with\"quotes"
    connection.push(tmp_path / "source", path, mode=0o755)
    listed = connection.shell(["sha256sum", path]).stdout.decode()
    assert listed.split()[0].lstrip("\\") == hashlib.sha256(content).hexdigest()
    connection.pull(path, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


def test_a_file_without_end_is_not_pulled(
    connection: DeviceConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(connection, AdbConnection):
        pytest.skip("this machine's own files are no other's to send")
    monkeypatch.setattr(adb_connection, "MAX_PULLED_BYTES", 100_000)
    (tmp_path / "source").write_bytes(b"x" * 200_000)
    connection.push(tmp_path / "source", f"{connection.folder}/contract/long")
    with pytest.raises(DeviceSick, match="more than 0 MiB"):
        connection.pull(f"{connection.folder}/contract/long", tmp_path / "back")
    assert (tmp_path / "back").stat().st_size <= 100_000


def test_push_sets_the_mode_and_overwrites(connection: DeviceConnection, tmp_path: Path) -> None:
    path = f"{connection.folder}/contract/script"
    for text in ("#!/bin/sh\necho a much longer first version\n", "#!/bin/sh\necho second\n"):
        (tmp_path / "script").write_text(text)
        connection.push(tmp_path / "script", path, mode=0o755)
    assert connection.shell(["cat", path]).stdout == b"#!/bin/sh\necho second\n"
    assert connection.shell(["test", "-x", path]).code == 0


def test_an_empty_file(connection: DeviceConnection, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    connection.push(tmp_path / "empty", f"{connection.folder}/contract/empty")
    connection.pull(f"{connection.folder}/contract/empty", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b""


def test_pull_of_nothing(connection: DeviceConnection, tmp_path: Path) -> None:
    with pytest.raises(DeviceSick, match="No such file"):
        connection.pull(f"{connection.folder}/contract/not/there", tmp_path / "back")
