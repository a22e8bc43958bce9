"""One phone that two hosts reach: whose it is lies on the phone, and so does what is to be put back."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.model.device import Health
from orchestrator.model.errors import LeaseLost
from orchestrator.model.experiment import Conditions
from orchestrator.system.config import Settings
from tests.phones import connect
from tests.servers import private_adb_server, required
from tests.waiting import eventually
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.device_lock import device_lock
from workers.discovery.crash_recovery import left_changed
from workers.session import owner
from workers.session.owner import Claimant, HeldElsewhere, Ownership, claimant_of, keeper_of, owned
from workers.session.saved_settings import ON_PHONE, SavedSettings

from .conftest import Wiring
from .test_discovery import Watch, brightness

LOG = "/data/local/tmp/pocketfarm/sessions"
WORKER = """
import sys, time
from pathlib import Path
from orchestrator.model.experiment import Conditions
from workers.connection.adb import AdbConnection, AdbServer
from workers.devices.admit import enrol_phone
from orchestrator.system.config import Settings
from workers.session.owner import HeldElsewhere
from workers.session.session import session

settings, met = Settings.model_validate_json(sys.argv[1]), Path(sys.argv[2])
address, serial, port, times = sys.argv[3:]
connection = AdbConnection(address, AdbServer(int(port), settings.adb_path), serial=serial)
member, _ = enrol_phone(connection, settings)
done = tried = 0
while done < int(times):
    tried += 1
    try:
        with session(member, Conditions(screen_dimmed=True), settings.state, lambda: None) as held:
            connection.shell(["sh", "-c", f"echo begin {settings.host} >> LOG"])
            while times != "1" and not met.exists():
                time.sleep(0.01)
            held.check()
            connection.shell(["sh", "-c", f"echo end {settings.host} >> LOG"])
            if times == "1":
                print("inside", flush=True)
                time.sleep(600)
        done += 1
    except HeldElsewhere:
        met.touch()
        time.sleep(0.05)
print(tried, flush=True)
""".replace("LOG", LOG)


@pytest.fixture
def phone(lab: Wiring) -> Iterator[AdbConnection]:
    lab.connection.shell(["rm", "-rf", f"{lab.connection.folder}/{owner.FOLDER}", LOG])
    yield lab.connection
    lab.connection.shell(["rm", "-rf", f"{lab.connection.folder}/{owner.FOLDER}", LOG])


@pytest.fixture
def other(lab: Wiring, tmp_path: Path) -> Iterator[AdbServer]:
    """A second host's adb server, which reaches the same phone."""
    with private_adb_server(tmp_path / "other-adb") as adb:
        server = AdbServer(adb.port, required("adb"))
        connect(server, lab.address)
        yield server


A, B = Claimant("lock-a", "a"), Claimant("lock-b", "b")


def test_one_of_many_takes_a_free_phone(phone: AdbConnection) -> None:
    taken, refused = list[Ownership](), list[str]()

    def take(name: str) -> None:
        try:
            taken.append(Ownership(phone, Claimant(name, name)))
        except HeldElsewhere as e:
            refused.append(str(e))

    threads = [threading.Thread(target=take, args=(f"host{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1 and len(refused) == 7
    taken[0].release()
    with owned(phone, B):
        assert keeper_of(phone, A) is not None and keeper_of(phone, B) is None
    assert keeper_of(phone, A) is None


def test_a_claim_is_renewed_runs_out_and_is_lost(phone: AdbConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "RENEWALS", 300)

    def ends_s() -> float:
        """The time at which it ends by the phone's clock."""
        sight = owner._look(phone)
        assert sight.owner is not None
        return sight.now_s + sight.owner.left_s

    with owned(phone, A) as held:
        first_s = ends_s()
        eventually(lambda: ends_s() > first_s + 0.1)
        assert keeper_of(phone, B) is not None
        held.check()
        renew = held._renew
        monkeypatch.setattr(held, "_renew", lambda: None)  # a host that hangs
        monkeypatch.setattr(owner, "TTL_S", 0.1)
        renew()
        eventually(lambda: keeper_of(phone, B) is None)
        with owned(phone, B):
            monkeypatch.undo()
            with pytest.raises(LeaseLost, match="another host"):
                held.check()
    assert keeper_of(phone, A) is None


def test_a_claim_that_ran_out_while_nobody_came_goes_on(phone: AdbConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pulled cable ends no run."""
    monkeypatch.setattr(owner, "TTL_S", 0.6)
    with owned(phone, A) as held:
        monkeypatch.setattr(held, "_renew", lambda: None)
        eventually(lambda: keeper_of(phone, B) is None)
        monkeypatch.undo()
        held.check()
        assert keeper_of(phone, B) is not None


@pytest.mark.parametrize(
    ("earlier", "later", "keeps_out"),
    [
        (Claimant("a", "h", "farm", 7), Claimant("b", "h", "farm", 8), False),
        (Claimant("a", "h", "farm", 8), Claimant("b", "h", "farm", 7), True),
        (Claimant("a", "h", "farm", 7), Claimant("b", "h", "other", 8), True),
        (Claimant("a", "h", "", 0), Claimant("b", "h", "", 8), True),
        (Claimant("a", "h", "farm", 8), Claimant("a", "h", "farm", 7), False),
    ],
)
def test_tokens_of_one_farm_and_dead_sessions_of_one_host(
    phone: AdbConnection, earlier: Claimant, later: Claimant, keeps_out: bool
) -> None:
    with owned(phone, earlier):
        assert (keeper_of(phone, later) is not None) == keeps_out


@pytest.mark.parametrize(
    "claim", ["", "words", "a:b:c:d:e:f", "a:b:c:1:BOOT:nan", "a:b:c:1:BOOT:1e99", "a:b:c:1:no:9e3"]
)
def test_a_claim_that_says_nothing_keeps_nobody_out(phone: AdbConnection, claim: str) -> None:
    boot = phone.shell(["cat", "/proc/sys/kernel/random/boot_id"]).stdout.decode().strip()
    folder = f"{phone.folder}/{owner.FOLDER}"
    phone.shell(["mkdir", "-p", folder])
    assert phone.shell(["ln", "-s", claim.replace("BOOT", boot) or ".", f"{folder}/5"]).code == 0
    with owned(phone, B):
        assert keeper_of(phone, A) is not None


def _worker(settings: Settings, lab: Wiring, server: AdbServer, times: int, met: Path) -> subprocess.Popen[str]:
    words = [settings.model_dump_json(), str(met), lab.address, lab.serial, str(server.port), str(times)]
    return subprocess.Popen([sys.executable, "-c", WORKER, *words], stdout=subprocess.PIPE, text=True)


def test_sessions_of_two_hosts_never_overlap(
    lab: Wiring, phone: AdbConnection, other: AdbServer, lab_settings: Settings, tmp_path: Path
) -> None:
    """Whoever has the phone first keeps it until the other was refused."""
    phone.shell(["settings", "put", "system", "screen_brightness", "77"])
    hosts = [
        (lab_settings.model_copy(update={"host": "a"}), lab.server),
        (lab_settings.model_copy(update={"host": "b", "state": tmp_path / "b"}), other),
    ]
    workers = [_worker(settings, lab, server, 3, tmp_path / "met") for settings, server in hosts]
    tried = [int(worker.communicate(timeout=200)[0]) for worker in workers]
    lines = phone.shell(["cat", LOG]).stdout.decode().split("\n")[:-1]
    assert len(lines) == 12
    for begin, end in zip(lines[::2], lines[1::2], strict=True):
        assert (begin.split()[0], end.split()[0]) == ("begin", "end") and begin.split()[1] == end.split()[1], lines
    assert sum(tried) > 6
    assert brightness(lab) == "77"


def test_what_a_dead_host_changed_another_puts_back(
    lab: Wiring,
    phone: AdbConnection,
    other: AdbServer,
    lab_settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first host's disk is gone with what it knew."""
    monkeypatch.setattr("workers.discovery.watch.ANNOUNCE_S", 0.2)
    phone.shell(["settings", "put", "system", "screen_brightness", "77"])
    first = lab_settings.model_copy(update={"host": "a", "state": tmp_path / "a"})
    worker = _worker(first, lab, lab.server, 1, tmp_path / "met")
    assert worker.stdout is not None and worker.stdout.readline() == "inside\n"
    assert brightness(lab) == "1"
    watch = Watch(lab_settings.model_copy(update={"host": "b", "adb_port": other.port}), other)
    elsewhere = watch.health(lab.serial, Health.BUSY_ELSEWHERE, "host a has the phone")
    assert elsewhere.state.left_changed == ()
    worker.kill()
    worker.communicate()
    shutil.rmtree(tmp_path / "a")
    folder = f"{phone.folder}/{owner.FOLDER}"
    number = phone.shell(["ls", folder]).stdout.decode().split()[-1].split(".")[0]
    phone.shell(["sh", "-c", f"rm -f {folder}/{number}.until; ln -s 1 {folder}/{number}.until"])  # its time is over
    watch.health(lab.serial, Health.READY)
    assert brightness(lab) == "77"
    assert left_changed(lab_settings.state) == {}
    assert b'"changed": {}' in phone.shell(["cat", f"{phone.folder}/{ON_PHONE}"]).stdout


def test_the_phone_s_journal_is_the_first_truth(lab: Wiring, phone: AdbConnection, tmp_path: Path) -> None:
    phone.shell(["settings", "put", "system", "screen_brightness", "77"])
    ours, theirs = (SavedSettings(tmp_path / name, phone) for name in ("ours", "theirs"))
    with device_lock(tmp_path / "ours", lab.serial):
        ours.prepare(Conditions(screen_dimmed=True))
    assert left_changed(tmp_path / "ours") == {lab.serial: ("awake", "screen")}
    assert set(theirs.restore()) == {"awake", "screen"} and brightness(lab) == "77"
    phone.shell(["settings", "put", "system", "screen_brightness", "99"])  # by its user, since
    assert ours.restore() == () and brightness(lab) == "99", "an older copy is not played back"
    assert left_changed(tmp_path / "ours") == {}
    ours.prepare(Conditions(screen_dimmed=True))
    phone.shell(["rm", f"{phone.folder}/{ON_PHONE}"])  # somebody tidied up
    assert set(ours.restore()) == {"awake", "screen"} and brightness(lab) == "99"


def test_sessions_that_begin_at_once_have_one_identity(tmp_path: Path) -> None:
    """The state folder is fresh, and they are on several devices."""
    with ThreadPoolExecutor(16) as pool:
        for number in range(20):
            state = tmp_path / str(number)
            (state / "locks").mkdir(parents=True)
            assert len(set(pool.map(lambda _, state=state: claimant_of(state, "h").lock, range(16)))) == 1
