"""Nobody leaves a phone, and nothing runs in it that was not pushed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from virtual_phones.control import PhoneStatus

from .conftest import TMP, Adb, eventually

SECRET = "words of the host"


@pytest.fixture
def secret(phone: PhoneStatus) -> Iterator[tuple[Path, str]]:
    """A file of the host beside the phones, and its path from the phone's folder for programs, upwards."""
    path = phone.root.parent / "secret"
    path.write_text(f"#!/bin/sh\necho {SECRET}\n")
    path.chmod(0o755)
    yield path, os.path.relpath(path, phone.root / TMP.lstrip("/"))
    path.unlink()


READS = (
    "cat {absolute}",
    "cat {upwards}",
    "cd {tmp}; cat {upwards}",
    "cat < {absolute}",
    "cp {absolute} {tmp}/copy; cat {tmp}/copy",
    "head -c 100 {tmp}/{upwards}",
    "ln -s {absolute} {tmp}/link; cat {tmp}/link",
    "cd {tmp}; ln -s {upwards} link; cat link",
    "cd {tmp}; ln -s ../../../.. up; cat up/secret",
    "cat {tmp}/planted",
    "cat /../{upwards}",
    "su -c 'cat {absolute}'",
    "ls -l {absolute}",
    "for f in {absolute}*; do cat $f; done",
)
RUNS = (
    "{absolute}",
    "cd {tmp}; {upwards}",
    "{tmp}/planted",
    "ln -s {absolute} {tmp}/link; {tmp}/link",
    "cp {absolute} {tmp}/copy; chmod 755 {tmp}/copy; {tmp}/copy",
    "/bin/sh -c 'echo {words}'",
    "echo '#!/bin/sh' > {tmp}/made; echo 'echo {words}' >> {tmp}/made; chmod 755 {tmp}/made; {tmp}/made",
)


@pytest.mark.parametrize("script", [*READS, *RUNS])
def test_no_script_leaves_the_phone(adb: Adb, phone: PhoneStatus, secret: tuple[Path, str], script: str) -> None:
    path, upwards = secret
    tmp = phone.root / TMP.lstrip("/")
    planted = tmp / "planted"
    planted.symlink_to(path)  # as a program inside may make one
    try:
        command = script.format(absolute=path, upwards=upwards, tmp=TMP, words=SECRET)
        done = adb("shell", command)
        assert SECRET.encode() not in done.stdout, done
        assert path.name.encode() not in done.stdout or b"ls" in command.encode()
    finally:
        for name in ("planted", "copy", "link", "up", "made"):
            (tmp / name).unlink(missing_ok=True)


def test_no_transfer_leaves_the_phone(adb: Adb, phone: PhoneStatus, secret: tuple[Path, str], tmp_path: Path) -> None:
    path, upwards = secret
    before = path.read_bytes()
    pulled = tmp_path / "pulled"
    for source in (str(path), f"{TMP}/{upwards}"):
        assert adb("pull", source, str(pulled)).returncode != 0
        assert not pulled.exists()
    mine = tmp_path / "mine"
    mine.write_text("overwritten")
    for target in (str(path), f"{TMP}/{upwards}"):
        adb("push", str(mine), target)
    link = tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to(path)
    adb("push", str(link.parent), TMP)
    assert (
        SECRET.encode() not in adb("shell", f"cat {TMP}/folder/link").stdout
        or not (phone.root / TMP.lstrip("/") / "folder" / "link").is_symlink()
    )
    adb.shell(f"rm -rf {TMP}/folder")
    assert path.read_bytes() == before


def test_a_process_opens_nothing_of_the_host(adb: Adb, program: Callable[[str], str]) -> None:
    """/proc/<pid>/root, cwd and fd of a program inside are the host's own."""
    path = program("sleep 60")
    adb.stay_awake()
    adb.shell(f"nohup setsid {path} > /dev/null 2>&1 &")
    pid = eventually(lambda: adb("shell", "pgrep -f program").stdout.decode().split())[0]
    try:
        assert f"{pid} (" in adb.shell(f"cat /proc/{pid}/stat")
        for below in ("root/etc/passwd", "cwd/../../../secret", "environ", "fd/0", "task/1/cwd/x", "maps"):
            done = adb("shell", f"cat /proc/{pid}/{below}")
            assert done.returncode != 0 and not done.stdout, (below, done)
        assert adb("shell", f"/proc/{pid}/exe -c 'echo {SECRET}'").stdout == b""
    finally:
        adb("shell", f"kill -9 {pid}")


def test_what_was_pushed_runs_also_moved_and_not_changed(adb: Adb, program: Callable[[str], str]) -> None:
    path = program("echo pushed")
    assert adb.shell(path) == "pushed\n"
    assert adb.shell(f"mv {path} {TMP}/moved; {TMP}/moved") == "pushed\n"
    assert adb.shell(f"cp {TMP}/moved {path}; chmod 755 {path}; {path}") == "pushed\n"
    done = adb("shell", f"echo 'echo more' >> {TMP}/moved; {TMP}/moved; rm {TMP}/moved")
    assert b"pushed" not in done.stdout
    assert b"Permission denied" in done.stderr
