"""The farm's commands, held against the table of what each Android release has; and what the farm makes of a phone
that lacks something."""

from __future__ import annotations

import ast
import asyncio
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from device_agent import build
from orchestrator.model.errors import DeviceSick, FarmError, Unsupported
from tests.source_tree import ROOT
from virtual_phones.commands import COMMANDS
from virtual_phones.phone import SHELL_V2_SDK, Phone
from virtual_phones.profile import load_profile
from virtual_phones.programs.streams import BytesSink, BytesSource, Io
from virtual_phones.shell.interpreter import Shell
from virtual_phones.shell.releases import ANDROID, FLOOR_SDK, MKSH, TOYBOX, USES, since, uses
from virtual_phones.system.processes import ProcessTable
from workers.connection.base import ShellResult
from workers.connection.quote import quote
from workers.devices import admit
from workers.devices.install import put_files
from workers.devices.probe import read_properties, read_state
from workers.devices.tools import HASHES, OPTIONAL, REQUIRED, missing_tools
from workers.engines.agent.kill_log import who_killed
from workers.enrolment.nodes import probe_nodes
from workers.enrolment.profile import probe_permissions
from workers.session.conditions import SETTINGS
from workers.session.conditions.background import count_apps
from workers.session.owner import claimant_of, owned

LATER = {
    ("cmd", "connectivity+airplane-mode"): "the permission airplane_mode",
    ("cmd", "power+set-fixed-performance-mode-enabled"): "the permission fixed_performance",
    ("cmd", "power+set-mode"): "the permission battery_saver",
    ("dumpsys", "thermalservice"): "facts that are not told",
    ("perfetto", ""): "refused before Android 10",
    ("perfetto", "--background"): "refused before Android 10",
    ("perfetto", "--txt"): "refused before Android 10",
    ("perfetto", "-c"): "refused before Android 10",
    ("perfetto", "-o"): "refused before Android 10",
    ("ps", "-A"): "a count that is not told",
    ("ps", "-o"): "a count that is not told",
    ("sha256sum", ""): "sha1sum in its place",
    ("su", ""): "the permission root",
    ("su", "-c"): "the permission root",
    ("svc", "bluetooth"): "the permission bluetooth",
    ("uhubctl", ""): "a program of this host",
}
"""Commands that came after the floor, or are no phone's, and how the farm does without them."""
SLOWEST_S = 2.5
"""A command of a phone that is slow, and not given up."""
SENDERS = {"shell": 0, "stream": 0, "quote": 0, "run": 1, "_output": 1, "_succeeds": 1}
"""Calls that send a command, and where in their arguments its words begin."""


def words_of(nodes: Sequence[ast.expr]) -> list[str]:
    """Words of a command in the source, with `?` for what is known only when it runs."""
    return [node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "?" for node in nodes]


def sent(tree: ast.Module) -> Iterator[tuple[int, list[str]]]:
    """Every command that a module sends, and every list that begins with a command's name."""
    for node in ast.walk(tree):
        words = words_of(node.elts) if isinstance(node, ast.List | ast.Tuple) else []
        if words and (words[0] in TOYBOX or words[0] in ANDROID):
            yield node.lineno, words
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = node.args[SENDERS[name] :] if name in SENDERS else []
        if given and isinstance(given[0], ast.List | ast.Tuple):
            given = given[0].elts
        if (words := words_of(given)) and words[0] != "?":
            yield node.lineno, words


def wrong(argv: Sequence[str], sdk: int) -> list[str]:
    """List what a phone of this release lacks of a command line, though nobody has said how to do without it."""
    name = argv[0].removeprefix("/system/bin/")
    if name in MKSH or ((name, "") in LATER and since_or_none(name) is None):
        return []
    found = []
    for use in ("", *uses([name, *argv[1:]])):
        first = since_or_none(name, use)
        unknown = use == "?" or ("?" in argv and any(known.startswith(f"{use}+") for known in USES.get(name, ())))
        if not unknown and (first is None or first > sdk) and (name, use) not in LATER:
            found.append(f"{name} {use}: {'not in the table' if first is None else f'from SDK {first} on'}")
    return found


def since_or_none(name: str, use: str = "") -> int | None:
    try:
        return since(name, use)
    except KeyError:
        return None


def test_one_floor_for_agent_farm_and_virtual_phones() -> None:
    assert f"android-{FLOOR_SDK}" == build._PLATFORM
    assert admit.FLOOR_SDK == SHELL_V2_SDK == FLOOR_SDK


def test_every_command_in_the_source_is_one_of_the_floor() -> None:
    files = sorted(set((ROOT / "workers").rglob("*.py")) - {ROOT / "workers" / "devices" / "tools.py"})
    commands = [(path, line, argv) for path in files for line, argv in sent(ast.parse(path.read_text()))]
    assert len({argv[0] for _, _, argv in commands}) > 25, "the search finds what is sent"
    bad = [
        f"{path.relative_to(ROOT)}:{line}: {each}" for path, line, argv in commands for each in wrong(argv, FLOOR_SDK)
    ]
    assert not bad, "\n".join(bad)
    assert not [each for name, words in REQUIRED.items() for each in wrong([name, *words.split()], FLOOR_SDK)]
    names = {argv[0] for _, _, argv in commands} - MKSH - {"?", "sh", "su", "perfetto", "uhubctl"}
    assert names <= {*REQUIRED, *HASHES, *OPTIONAL}, "admission asks for it"


class InProcess:
    """Implements `DeviceConnection` over the shell of a virtual phone without a transport; notes what it runs."""

    address, folder = "p", "/data/local/tmp/pocketfarm"

    def __init__(self, phone: Phone) -> None:
        self.serial, self.phone = phone.serial, phone
        self.ran: list[list[str]] = []
        """Commands that its shell has run so far, where a test notes that."""
        self.hasty: list[Sequence[str]] = []
        """Commands that have less time than a slow phone needs."""

    def shell(self, argv: Sequence[str], *, deadline_s: float = 10.0) -> ShellResult:
        out, err = BytesSink(), BytesSink()
        before = len(self.ran)
        code = asyncio.run(Shell(self.phone, COMMANDS).run(quote(argv), Io(BytesSource(), out, err)))
        if deadline_s < SLOWEST_S * sum(each[0] not in MKSH for each in self.ran[before:]):
            self.hasty.append(argv)
        return ShellResult(code, bytes(out.data), bytes(err.data))

    def shells(
        self, commands: Sequence[Sequence[str]], *, deadline_s: float = 10.0, guard: int | None = None
    ) -> list[ShellResult]:
        assert guard is None
        return [self.shell(command, deadline_s=deadline_s) for command in commands]

    def push(self, source: Path, target: str, *, mode: int = 0o644, deadline_s: float = 120.0) -> None:
        there = self.phone.tree.host(target)
        shutil.copyfile(source, there)
        there.chmod(mode)

    def reconnect(self) -> None: ...


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every command that a virtual shell runs, also within scripts."""
    noted: list[list[str]] = []
    call = Shell.call

    async def noting(self: Shell, argv: Sequence[str], io: Io) -> int:
        noted.append(list(argv))
        return await call(self, argv, io)

    monkeypatch.setattr(Shell, "call", noting)
    return noted


def phone_of(sdk: int, folder: Path, name: str = "nexus_6p") -> InProcess:
    profile = load_profile(name).model_copy(update={"sdk": sdk})
    return InProcess(Phone(profile, 0, folder / f"{name}-{sdk}", ProcessTable(), None))


def work(connection: InProcess, folder: Path) -> Path:
    """Whatever the farm asks a phone for from admission to the end of a session, but for its agent."""
    file = folder / "file"
    file.write_bytes(bytes(99))
    read_properties(connection)
    missing_tools(connection)
    for _ in range(2):
        put_files(connection, "agent", "ab" * 32, {"file": file}, mode=0o755)
    read_state(connection, "phone")
    probe_permissions(connection)
    who_killed(connection, 1)
    with owned(connection, claimant_of(folder, "h")):  # type: ignore[arg-type]
        for setting in SETTINGS.values():
            with suppress(Unsupported):
                setting.check(connection)  # type: ignore[arg-type]
                saved = setting.save(connection)  # type: ignore[arg-type]
                setting.prepare(connection)  # type: ignore[arg-type]
                setting.restore(connection, saved)  # type: ignore[arg-type]
    return connection.phone.tree.host(f"{connection.folder}/agent/{'ab' * 8}/file")


@pytest.mark.parametrize("sdk", [24, 25, 26, 27, 29, 30, 34])
def test_a_phone_of_each_release_can_do_all_that_it_is_asked(
    sdk: int, tmp_path: Path, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.session.conditions.bluetooth.SWITCH_S", 0.0)
    connection = phone_of(sdk, tmp_path)
    connection.ran = ran
    assert count_apps(connection) == ("2 processes of apps" if sdk >= 26 else ""), "unknown is not none"
    assert work(connection, tmp_path).read_bytes() == bytes(99)
    assert not [each for argv in ran for each in wrong(argv, sdk)]
    assert not connection.hasty, "a script has time for each of its commands, also where each takes seconds"
    nodes = {node.path.rpartition("/")[2]: node for node in probe_nodes(connection)}
    assert {node.error for node in nodes.values()} <= {"", "Permission denied"}
    assert int(nodes["capacity"].value) > 0, "a node is read, not the refusal of an option"
    allowed = probe_permissions(connection)
    for name, first in {"airplane_mode": 30, "battery_saver": 28, "bluetooth": 26}.items():
        assert allowed[name] == (sdk >= first)


@pytest.mark.parametrize("status", [126, 127])
def test_a_tool_that_is_not_there_is_named_and_no_answer(tmp_path: Path, seed: int, status: int) -> None:
    """Drawn members: whatever the phone lacks, it is told by name, and neither storage nor cable is blamed."""
    draw = random.Random(f"{seed}/{status}")
    for number, tool in enumerate([*draw.sample(sorted(REQUIRED), 5), HASHES]):
        connection = phone_of(draw.choice((26, 30, 34)), tmp_path / str(number))
        connection.phone.lacking = dict.fromkeys([tool] if isinstance(tool, str) else tool, status)
        named = tool if isinstance(tool, str) else draw.choice(tool[:1])
        with pytest.raises((Unsupported, DeviceSick)) as told:
            work(connection, tmp_path)
        assert isinstance(told.value, Unsupported), told.value
        assert f"`{named}`" in str(told.value) and "cable" not in str(told.value)


def test_what_only_some_conditions_need_is_told_at_admission(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(5):
        lacking = draw.sample(OPTIONAL, draw.randint(0, len(OPTIONAL)))
        connection = phone_of(draw.randint(24, 34), tmp_path)
        connection.phone.lacking = dict.fromkeys(lacking, 127)
        assert set(missing_tools(connection)) == set(lacking)
        with suppress(FarmError):
            read_state(connection, "phone")
