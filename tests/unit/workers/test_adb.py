"""An adb server that misbehaves on purpose: what a healthy one never sends."""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from farm.parts.part import free_port
from orchestrator.model.device import Health
from orchestrator.model.errors import AdbDown, DeviceSick, ServiceDown, SetupError, TransportLost, Unsupported
from tests.waiting import eventually
from workers.connection.adb import (
    MAX_OUTPUT_BYTES,
    AdbConnection,
    AdbServer,
    ListedDevice,
    parse_devices,
)
from workers.connection.adb.server import STATES
from workers.connection.addresses import by_call, over_network
from workers.devices.lookup import unusable

Handler = Callable[[socket.socket], None]


@contextmanager
def server(handle: Handler) -> Iterator[int]:
    """A listener that gives each connection to `handle`, and hangs up as a server that has heard everything."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            handle(client)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(5)
            while client.recv(4096):  # what is left unread would turn the end of the stream into a reset
                pass

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threads.append(threading.Thread(target=serve, args=(client,), daemon=True))
                threads[-1].start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for each in [thread, *threads]:
            each.join(5)


def request(client: socket.socket) -> str:
    size = int(client.recv(4, socket.MSG_WAITALL), 16)
    return client.recv(size, socket.MSG_WAITALL).decode()


def serving(reply: Handler) -> Handler:
    """Answers OKAY to the transport and the service, then what the test says."""

    def handle(client: socket.socket) -> None:
        for _ in range(2):
            request(client)
            client.sendall(b"OKAY")
        reply(client)

    return handle


def packet(kind: int, content: bytes) -> bytes:
    return struct.pack("<BI", kind, len(content)) + content


def phone(port: int) -> AdbConnection:
    return AdbConnection("p1", AdbServer(port))


def test_a_stream_without_exit_status_was_cut() -> None:
    with (
        server(serving(lambda c: c.sendall(packet(1, b"half the out")))) as port,
        pytest.raises(TransportLost) as caught,
    ):
        phone(port).shell(["cat", "/x"])
    assert caught.value.device == "p1" and "cat /x" in str(caught.value)
    assert isinstance(caught.value.__cause__, EOFError)


def test_a_stream_that_was_reset() -> None:
    def reset(client: socket.socket) -> None:
        client.recv(5, socket.MSG_WAITALL)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    with server(serving(reset)) as port, pytest.raises(TransportLost, match="cat /x") as caught:
        phone(port).shell(["cat", "/x"])
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_a_stream_cut_within_a_packet() -> None:
    with server(serving(lambda c: c.sendall(packet(1, b"abc")[:6]))) as port, pytest.raises(TransportLost):
        phone(port).shell(["x"])


def test_a_device_that_the_server_does_not_know() -> None:
    def refuse(client: socket.socket) -> None:
        request(client)
        client.sendall(b"FAIL000bno device 7")

    with server(refuse) as port, pytest.raises(TransportLost, match="no device 7"):
        phone(port).shell(["x"])


@pytest.mark.parametrize("junk", [packet(9, b""), struct.pack("<BI", 1, MAX_OUTPUT_BYTES + 1)])
def test_packets_that_no_phone_sends(junk: bytes) -> None:
    with server(serving(lambda c: c.sendall(junk))) as port, pytest.raises(DeviceSick, match="unreadable"):
        phone(port).shell(["x"])


def test_a_mute_server_costs_the_deadline_and_no_more() -> None:
    def say_nothing(client: socket.socket) -> None:
        while client.recv(4096):
            pass

    with server(say_nothing) as port, pytest.raises(TransportLost, match=r"0\.4 s"):
        phone(port).shell(["x"], deadline_s=0.4)  # a wait would end in the time limit of the test


def test_a_byte_now_and_then_does_not_extend_it() -> None:
    sent: list[int] = []

    def drip(client: socket.socket) -> None:
        for number in range(300):
            client.sendall(packet(1, b"."))
            sent.append(number)
            time.sleep(0.1)

    with server(serving(drip)) as port:
        with pytest.raises(TransportLost):
            phone(port).shell(["x"], deadline_s=0.5)
        assert len(sent) < 300


def test_nobody_listens() -> None:
    with pytest.raises(TransportLost):
        phone(free_port()).shell(["x"])
    with pytest.raises(ServiceDown, match="start it"):
        AdbServer(free_port()).devices()


def test_push_to_a_full_phone(tmp_path: Path) -> None:
    def full(client: socket.socket) -> None:
        client.recv(100)
        reason = b"write failed: No space left on device"
        client.sendall(b"FAIL" + struct.pack("<I", len(reason)) + reason)
        time.sleep(0.2)
        client.close()  # while the file is still under way

    (tmp_path / "big").write_bytes(bytes(4 << 20))
    with server(serving(full)) as port, pytest.raises((DeviceSick, TransportLost)) as caught:
        phone(port).push(tmp_path / "big", "/data/x")
    assert isinstance(caught.value, DeviceSick) and "storage full" in str(caught.value)


def version(number: bytes) -> Handler:
    def handle(client: socket.socket) -> None:
        request(client)
        client.sendall(b"OKAY0004" + number)

    return handle


def adb_binary(folder: Path, number: str) -> str:
    path = folder / "adb"
    path.write_text(f"#!/bin/sh\necho Android Debug Bridge version 1.0.{number}\n")
    path.chmod(0o755)
    return str(path)


def test_a_server_of_another_version_is_left_alone(tmp_path: Path) -> None:
    with server(version(b"0028")) as port:
        with pytest.raises(SetupError, match=r"version 40, .* has 41") as caught:
            AdbServer(port, adb_binary(tmp_path, "41")).check()
        assert "FARM_ADB_PORT" in str(caught.value)
        assert AdbServer(port, adb_binary(tmp_path, "40")).check() == "40"


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"OKAY0004zzzz", b""])
def test_something_else_on_the_port(tmp_path: Path, reply: bytes) -> None:
    def handle(client: socket.socket) -> None:
        request(client)
        client.sendall(reply)

    with server(handle) as port, pytest.raises(SetupError, match="no adb server") as caught:
        AdbServer(port, adb_binary(tmp_path, "41")).check()
    assert "start-server" not in str(caught.value), "something listens there already"


def test_no_adb_binary(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="apt-get"):
        AdbServer(free_port(), str(tmp_path / "none")).check()


def test_the_list_of_devices() -> None:
    listing = (
        "0011664BC002435        unauthorized usb:2-1 transport_id:12\n"
        "emulator-5554          device product:sdk model:Pixel_7 device:panther transport_id:1\n"
        "127.0.0.1:41000        offline transport_id:9\n"
        "ab12                   no permissions (user in plugdev group; udev rules wrong?); see [http://x] usb:1-2\n"
        "a-serial-of-more-than-22-characters device transport_id:3\n"
    )
    assert parse_devices(listing) == [
        ListedDevice("0011664BC002435", "unauthorized", "usb:2-1 transport_id:12"),
        ListedDevice("emulator-5554", "device", "product:sdk model:Pixel_7 device:panther transport_id:1"),
        ListedDevice("127.0.0.1:41000", "offline", "transport_id:9"),
        ListedDevice("ab12", "no permissions (user in plugdev group; udev rules wrong?); see [http://x]", "usb:1-2"),
        ListedDevice("a-serial-of-more-than-22-characters", "device", "transport_id:3"),
    ]
    assert parse_devices("\n") == []


def test_phones_with_one_usb_serial_number_are_told_apart_by_their_port() -> None:
    listing = "0123456789ABCDEF       device usb:1-2 product:x\n0123456789ABCDEF       device usb:1-3 product:x\n"
    assert [row.address for row in parse_devices(listing)] == ["usb:1-2", "usb:1-3"]


NAMES = {
    "R58M42ABCDE": (False, False),
    "(no serial number)": (False, False),
    "a serial with spaces (2)": (False, False),
    "offline device": (False, False),
    "emulator-5554": (False, False),
    "127.0.0.1:41000": (True, False),
    "localhost:5555": (True, False),
    "[::1]:5555": (True, False),
    "192.168.1.20:5555": (True, True),
    "[fe80::1%wlan0]:37123": (True, True),
    "phone-7.lab:5555": (True, True),
    "adb-0123456789ABCDEF-xYz012._adb-tls-connect._tcp": (True, True),
    "adb-0123456789ABCDEF-xYz012 (2)._adb-tls-connect._tcp": (True, True),
    "adb-R58M._adb._tcp.": (True, True),
}
"""Name -> whether adb's server called it, and whether over a network."""
OPEN_STATES = (
    "host",
    "waking up",
    "no permissions (missing udev rules? user is here); see [http://x/y z]",
    "no device",
)


def test_rows_of_any_name_and_state_are_read_back(seed: int) -> None:
    """A state that nobody knows is kept as it is, wherever a padded name or a name of mDNS shows where it begins."""
    draw = random.Random(seed)
    for _ in range(300):
        rows = [(name, draw.choice(STATES + OPEN_STATES)) for name in draw.sample(list(NAMES), draw.randint(1, 6))]
        rows = [(name, state) for name, state in rows if state != "waking up" or len(name) < 22 or "._" in name]
        tags = [draw.sample(["product:p", "model:M_1", "device:d", "brand_new:x"], draw.randint(0, 4)) for _ in rows]
        lines = [
            f"{name:22s} {' '.join((state, *told, 'transport_id:7'))}\n"
            for (name, state), told in zip(rows, tags, strict=True)
        ]
        found = parse_devices("".join(lines))
        assert [(row.address, row.state) for row in found] == rows
        assert [(by_call(row.address), over_network(row.address)) for row in found] == [NAMES[name] for name, _ in rows]
        assert all(row.detail.endswith("transport_id:7") for row in found)


def test_a_usb_phone_whose_serial_number_reads_like_an_address_is_named_by_its_port() -> None:
    (row,) = parse_devices("10.0.0.7:5555          device usb:1-2 product:x\n")
    assert (row.address, by_call(row.address), over_network(row.address)) == ("usb:1-2", False, False)


@pytest.mark.parametrize("state", [*STATES, "no permissions (x); see [http://y]", "waking up", ""])
def test_the_advice_is_that_of_the_state(state: str) -> None:
    health, advice = unusable(ListedDevice("A b", state, "usb:1-2"), AdbServer(5038))
    assert ("start Android" in advice) is (state in ("bootloader", "recovery", "rescue", "sideload", "host"))
    assert (health is Health.UNAUTHORIZED) is (state.startswith("no perm") or "author" in state)
    assert ("udev" in advice) is state.startswith("no perm")
    assert ("adb -P 5038 -s 'A b' attach" in advice) is (state == "detached")
    assert "usb:1-2" in advice


def test_a_phone_is_reached_by_its_address_and_called_by_its_serial() -> None:
    asked: list[str] = []

    def refuse(client: socket.socket) -> None:
        asked.append(request(client))
        client.sendall(b"FAIL0004gone")

    with server(refuse) as port, pytest.raises(TransportLost, match="gone") as caught:
        AdbConnection("127.0.0.1:41000", AdbServer(port), serial="R58M42").shell(["true"])
    assert asked == ["host:transport:127.0.0.1:41000"]
    assert caught.value.device == "R58M42"


@pytest.mark.parametrize(
    ("features", "error"),
    [(b"", Unsupported), (b"cmd,stat_v2", Unsupported), (b"shell_v2,cmd", TransportLost)],
)
def test_an_adbd_without_shell_v2_is_no_bad_cable(features: bytes, error: type[Exception]) -> None:
    """The daemons of Android 6 and older close the stream of a service that they do not have."""

    def old(client: socket.socket) -> None:
        if request(client) == "host-serial:A:features":
            client.sendall(b"OKAY%04x%s" % (len(features), features))
            return
        client.sendall(b"OKAY")
        assert request(client).startswith("shell,v2,raw:")
        client.sendall(b"FAIL0006closed")

    with server(old) as port, pytest.raises(error) as caught:
        AdbConnection("A", AdbServer(port)).shell(["getprop", "ro.serialno"])
    assert ("Android 7" in str(caught.value)) is (error is Unsupported)
    assert ("cable" in str(caught.value)) is (error is TransportLost)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="adb-") as name:
        yield Path(name)


def test_many_at_once_wait_for_a_unix_socket_with_a_short_queue(short: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(12) as pool:
        listener.bind(str(short / "s"))
        listener.listen(1)
        asked = [pool.submit(AdbServer(socket=short / "s").devices, deadline_s=20.0) for _ in range(12)]
        for _ in asked:
            client, _ = listener.accept()
            with client:
                assert request(client) == "host:devices-l"
                client.sendall(b"OKAY0009p1 device")
        assert {rows.result()[0].address for rows in asked} == {"p1"}


def test_a_process_that_is_stopped_while_it_waits_for_its_turn_goes_on_waiting(short: Path) -> None:
    waits = f"""from workers.connection.sockets import *
print("now", flush=True)
connect_unix(Path({str(short / "s")!r}), 60.0).sendall(b"here")"""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as before:
        listener.bind(str(short / "s"))
        listener.listen(0)
        listener.settimeout(20.0)
        before.connect(str(short / "s"))
        with subprocess.Popen([sys.executable, "-c", waits], stdout=subprocess.PIPE, text=True) as process:
            stopped = psutil.Process(process.pid)
            assert process.stdout and process.stdout.readline() == "now\n"
            eventually(lambda: stopped.status() == psutil.STATUS_SLEEPING)
            for _ in range(3):
                stopped.suspend()
                eventually(lambda: stopped.status() == psutil.STATUS_STOPPED)
                stopped.resume()
                eventually(lambda: stopped.status() != psutil.STATUS_STOPPED)
            listener.accept()[0].close()
            with listener.accept()[0] as client:
                assert client.recv(4) == b"here"
            assert process.wait(60) == 0


def test_who_loses_a_phone_as_the_server_dies_blames_the_server(short: Path) -> None:
    place = short / "s"
    phone = AdbConnection("p1", server_of := AdbServer(socket=place))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(4)
        server_of.look()
        with listener.accept()[0]:
            assert not server_of.is_shaken
    place.unlink()
    with pytest.raises(AdbDown, match="server went away"):
        phone.shell(["true"], deadline_s=1.0)
    with socket.socket(socket.AF_UNIX) as listener:  # a new server does not know the phone yet
        listener.bind(str(place))
        listener.listen(4)
        server_of.look()
        assert server_of.is_shaken


def test_a_unix_socket_that_nobody_serves_is_given_up_in_time(short: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(short / "s"))
        listener.listen(0)
        first.connect(str(short / "s"))
        with pytest.raises(ServiceDown, match=str(short)):
            AdbServer(socket=short / "s").devices(deadline_s=0.3)
    (short / "s").unlink()
    with pytest.raises(ServiceDown, match="farm status"):
        AdbServer(socket=short / "s").devices(deadline_s=0.3)
