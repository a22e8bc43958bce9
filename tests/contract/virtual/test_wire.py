"""The ADB protocol itself, spoken by hand."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.phones import start_phones
from tests.servers import PrivateAdb, adb_key, required
from virtual_phones.adb.key import read_public_key
from virtual_phones.adb.message import MAX_PAYLOAD, VERSION, Message, encode_header
from virtual_phones.control import ControlClient, PhoneStatus
from virtual_phones.faults import Unauthorized

from .conftest import Adb
from .wire_host import PUBLIC_KEY, SIGNATURE, TOKEN, Host, sign


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PhoneStatus, ControlClient]]:
    """A phone that no adb server knows."""
    folder: Path = tmp_path_factory.mktemp("lone")
    with start_phones(folder, ["galaxy_s7"]) as phones:
        yield phones.phones[0], phones.control


@pytest.fixture
def host(lone: tuple[PhoneStatus, ControlClient]) -> Iterator[Host]:
    lone[1].clear()
    host = Host(lone[0].port)
    with host.socket:
        yield host


def test_the_banner_names_product_and_features(host: Host) -> None:
    reply = host.admitted()
    assert (reply.command, reply.arg0, reply.arg1) == (b"CNXN", VERSION, MAX_PAYLOAD)
    assert reply.data == (
        b"device::ro.product.name=heroqltevzw_virtual;ro.product.model=SM-G930V;ro.product.device=heroqltevzw;"
        b"features=shell_v2,cmd,stat_v2,fixed_push_mkdir"  # Android 8: the others came with 11
    )


def test_one_block_is_in_flight_until_it_is_acknowledged(host: Host) -> None:
    host.admitted()
    host.send(b"OPEN", 7, 0, b"shell:echo one; echo two\0")
    opened = host.take()
    assert (opened.command, opened.arg1) == (b"OKAY", 7)
    assert host.take().data == b"one\n"
    assert host.is_quiet()
    host.send(b"OKAY", 7, opened.arg0)
    assert host.take().data == b"two\n"
    closed = host.take()
    assert (closed.command, closed.arg0, closed.arg1) == (b"CLSE", opened.arg0, 7)


def test_blocks_respect_the_limit_of_the_other_end(host: Host) -> None:
    host.admitted(limit=4096)
    host.send(b"OPEN", 1, 0, b"exec:echo " + 9999 * b"a" + b"\0")
    opened = host.take()
    sizes = []
    while (message := host.take()).command == b"WRTE":
        sizes.append(len(message.data))
        host.send(b"OKAY", 1, opened.arg0)
    assert sizes == [4096, 4096, 1808]


def test_streams_do_not_disturb_each_other(host: Host) -> None:
    host.admitted()
    for stream in (1, 2):
        host.send(b"OPEN", stream, 0, b"shell:cat\0")
    ids = {message.arg1: message.arg0 for message in (host.take(), host.take())}
    host.send(b"WRTE", 2, ids[2], b"second")
    replies = {message.command: message for message in (host.take(), host.take())}
    assert replies[b"OKAY"].arg1 == 2
    assert (replies[b"WRTE"].arg1, replies[b"WRTE"].data) == (2, b"second")
    host.send(b"CLSE", 1, ids[1])
    assert host.take().command == b"CLSE"
    host.send(b"OKAY", 2, ids[2])
    assert host.is_quiet()


@pytest.mark.parametrize("service", [b"tcpip:5555\0", b"root:\0", b"tcp:80\0", b"reverse:forward:x\0", b"\0"])
def test_unknown_services_are_closed_at_once(host: Host, service: bytes) -> None:
    host.admitted()
    host.send(b"OPEN", 9, 0, service)
    assert host.take() == Message(b"CLSE", 0, 9)


def test_an_old_host_gets_sums(host: Host) -> None:
    reply = host.admitted(version=0x01000000)
    assert host.sum == sum(reply.data)


@pytest.mark.parametrize(
    "garbage",
    [b"GET / HTTP/1.1\r\nHost: phone\r\n\r\n", encode_header(Message(b"CNXN", 1, 1))[:-1] + b"\0", bytes(24)],
)
def test_garbage_ends_the_connection_and_nothing_else(
    host: Host, lone: tuple[PhoneStatus, ControlClient], garbage: bytes
) -> None:
    host.socket.sendall(garbage)
    with pytest.raises((EOFError, ConnectionError)):
        host.take()
    another = Host(lone[0].port)
    with another.socket:
        assert another.admitted().command == b"CNXN"


def test_a_payload_beyond_the_limit_ends_the_connection(host: Host) -> None:
    header = bytearray(encode_header(Message(b"WRTE", 1, 1)))
    struct.pack_into("<I", header, 12, MAX_PAYLOAD + 1)
    host.socket.sendall(header)
    with pytest.raises((EOFError, ConnectionError)):
        host.take()


def test_a_bad_sync_request_is_answered_with_its_fault(host: Host) -> None:
    host.admitted()
    host.send(b"OPEN", 1, 0, b"sync:\0")
    opened = host.take()
    host.send(b"WRTE", 1, opened.arg0, struct.pack("<4sI", b"HELO", 1) + b"/")
    replies = {message.command: message.data for message in (host.take(), host.take())}
    assert replies[b"WRTE"].startswith(b"FAIL")
    assert b"HELO" in replies[b"WRTE"]


def test_no_signature_is_accepted_before_the_person_agrees(host: Host, lone: tuple[PhoneStatus, ControlClient]) -> None:
    phone, control = lone
    control.fault(phone.name, Unauthorized())
    host.socket.close()  # the fault has dropped it
    host.socket = Host(phone.port).socket
    token = host.greet()
    assert (token.command, token.arg0, len(token.data)) == (b"AUTH", TOKEN, 20)
    host.send(b"AUTH", SIGNATURE, 0, sign(adb_key(), token.data))
    again = host.take()
    assert again.command == b"AUTH"
    assert again.data != token.data
    host.send(b"AUTH", PUBLIC_KEY, 0, b"public key\0")
    assert host.is_quiet()
    host.send(b"OPEN", 1, 0, b"shell:id\0")
    control.clear(phone.name)
    assert host.take().command == b"CNXN"
    host.socket.close()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another user's key, well made."""
    key = tmp_path_factory.mktemp("stranger") / "adbkey"
    subprocess.run([required("adb"), "keygen", str(key)], check=True, capture_output=True)
    return key


def test_a_stranger_opens_nothing_whatever_he_sends(host: Host, stranger: Path) -> None:
    token = host.greet()
    answers = [sign(stranger, token.data), sign(adb_key(), bytes(20)), bytes(256), b"\xff" * 256, b"", b"\1"]
    for signature in answers:
        host.send(b"AUTH", SIGNATURE, 0, signature)
        again = host.take()
        assert (again.command, again.arg0) == (b"AUTH", TOKEN)
        assert again.data != token.data
    host.send(b"AUTH", PUBLIC_KEY, 0, stranger.with_suffix(".pub").read_bytes() + b"\0")
    for service in (b"shell:id\0", b"sync:\0", b"exec:id\0", b"reboot:\0"):
        host.send(b"OPEN", 1, 0, service)
    assert host.is_quiet()


def test_a_signature_is_good_for_one_connection_and_once(host: Host, lone: tuple[PhoneStatus, ControlClient]) -> None:
    seen = sign(adb_key(), host.greet().data)
    another = Host(lone[0].port)
    with another.socket:
        another.greet()
        for _ in range(2):
            another.send(b"AUTH", SIGNATURE, 0, seen)
            assert another.take().command == b"AUTH"
    host.send(b"AUTH", SIGNATURE, 0, seen)
    assert host.take().command == b"CNXN"


def test_adb_with_another_key_is_unauthorized(
    lone: tuple[PhoneStatus, ControlClient], stranger: Path, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{lone[0].port}"
    adb = PrivateAdb(tmp_path / "adb")
    for name in ("adbkey", "adbkey.pub"):
        shutil.copy(stranger.with_name(name), tmp_path / "adb" / ".android" / name)
    adb.start()
    try:
        stranger_s = Adb(adb.port, address)
        stranger_s("connect", address)
        assert stranger_s.state() in ("unauthorized", "authorizing", "offline")
        done = stranger_s("shell", "id")
        assert done.returncode != 0 and b"uid" not in done.stdout
    finally:
        adb.stop()


@pytest.mark.parametrize("content", [b"", b"AAAA user@host", b"\xff\xfe", b"not base64!", b"QAAAAA=="])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "adbkey.pub").write_bytes(content)
    with pytest.raises(ValueError, match=r"adbkey\.pub"):
        read_public_key(tmp_path / "adbkey.pub")
