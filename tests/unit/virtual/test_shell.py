"""The shell and its commands, without a transport."""

from __future__ import annotations

import hashlib
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from virtual_phones.commands import COMMANDS
from virtual_phones.phone import Phone
from virtual_phones.profile import load_profile
from virtual_phones.shell.releases import ANDROID, MKSH, TOYBOX, USES, since, whose

from .conftest import Sh

TMP = "/data/local/tmp"


@pytest.mark.parametrize(
    ("script", "code", "out"),
    [
        ("true && echo a || echo b", 0, "a\n"),
        ("false && echo a || echo b", 0, "b\n"),
        ("false; echo $?", 0, "1\n"),
        ("! true; echo $?", 0, "1\n"),
        ("exit 7; echo no", 7, ""),
        ("(exit 3); echo $?", 0, "3\n"),
        ("X='a  b'; echo $X; echo \"$X\"", 0, "a b\na  b\n"),
        ('X=1 true; echo "[$X]"', 0, "[]\n"),
        ("echo $(echo a; echo b)", 0, "a b\n"),
        ("echo one two | wc -w", 0, "2\n"),
        ("printf 'a\\nb\\n' | head -n 1", 0, "a\n"),
        (
            "grep -sH '' /proc/none /sys/class/power_supply/*/type; echo $?",
            0,
            "/sys/class/power_supply/battery/type:Battery\n/sys/class/power_supply/usb/type:USB\n2\n",
        ),
        ("cd /data/local && pwd", 0, "/data/local\n"),
        ("sh -c 'exit 4'", 4, ""),
        ("timeout 5 echo ok", 0, "ok\n"),
        ("timeout 0.05 sleep 9", 124, ""),
        ("env A=b sh -c 'echo $A'", 0, "b\n"),
        ("nohup nice -n 10 echo deep", 0, "deep\n"),
        ("[ a = a ] && [ 2 -gt 1 ] && test -d /data && ! test -e /nope && echo yes", 0, "yes\n"),
        ("echo a >/dev/null 2>&1", 0, ""),
        ("sleep 0.01 & wait; echo after", 0, "after\n"),
        ("id -u; whoami", 0, "2000\nshell\n"),
        ("which ls frob cd", 1, "/system/bin/ls\n"),
        ("sh -c 'command -v am'", 0, "/system/bin/am\n"),
        ("command -v cd ls", 0, "cd\n/system/bin/ls\n"),
        ("command -v frob; echo $?", 0, "127\n"),
        ("command -v /data/frob || echo no", 0, "no\n"),
        ("command -v su || echo no root", 0, "no root\n"),
        ("command -p echo run", 0, "run\n"),
        ("command -V ls; type cd frob", 127, "ls is /system/bin/ls\ncd is a shell builtin\nfrob not found\n"),
        ("toybox echo a; /system/bin/echo b", 0, "a\nb\n"),
        ("echo 'echo piped' | sh", 0, "piped\n"),
        ("(exec echo last; echo never); echo after", 0, "last\nafter\n"),
        ('_a=1; echo "$_a ${_a}$"', 0, "1 1$\n"),
    ],
)
def test_scripts(sh: Sh, script: str, code: int, out: str) -> None:
    result = sh(script)
    assert (result.code, result.out) == (code, out)


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("frob x", 127, "/system/bin/sh: frob: inaccessible or not found\n"),
        ("/data/local/tmp/frob", 127, "/system/bin/sh: /data/local/tmp/frob: inaccessible or not found\n"),
        ("/data", 126, "/system/bin/sh: /data: Permission denied\n"),
        ("cat /nope", 1, "cat: /nope: No such file or directory\n"),
        ("ls /nope", 1, "ls: /nope: No such file or directory\n"),
        ("cat /data", 1, "cat: /data: Is a directory\n"),
        ("cat /sys/class/kgsl/kgsl-3d0/gpuclk", 1, "cat: /sys/class/kgsl/kgsl-3d0/gpuclk: Permission denied\n"),
        ("echo 1 > /sys/class/power_supply/battery/status", 1, "can't open"),
        ("mkdir /system/x", 1, "mkdir: /system/x: Read-only file system\n"),
        ("rm /data/local/tmp/none", 1, "rm: /data/local/tmp/none: No such file or directory\n"),
        ("kill 1", 1, "No such process"),
        ("settings get", 255, "usage"),
        ("if true; then echo a; fi", 1, "'if'"),
        ("settings frob global x y", 255, "settings: bad arguments: frob global x y\n"),
        ("sleep", 1, "sleep: bad arguments: "),
        ("head -n many /proc/uptime", 1, "head: bad arguments: -n many /proc/uptime"),
        ("grep '(' /proc/uptime", 1, "grep: bad arguments: '(' /proc/uptime"),
        ("sh -c 'echo $0' name", 1, "no parameters"),
    ],
)
def test_failures_speak_as_android_does(sh: Sh, script: str, code: int, message: str) -> None:
    result = sh(script)
    assert result.code == code
    assert message in result.err


def test_what_a_real_phone_knows_is_there_or_said_to_be_lacking(sh: Sh, phone: Phone) -> None:
    """Never `not found`, and never a silent failure: that would be taken for the phone's own answer."""
    for name in {*MKSH, *TOYBOX, *ANDROID}:
        result = sh(f"command -v '{name}'")
        if since(name) > phone.profile.sdk:
            assert (result.code, result.out, result.err) == (127, "", "")
            assert sh(name).err == f"/system/bin/sh: {name}: inaccessible or not found\n"
        elif COMMANDS.find(phone, name):
            place = name if name in MKSH else f"/system/bin/{name}"
            assert (result.code, result.out, result.err) == (0, f"{place}\n", "")
        elif name not in COMMANDS.handlers:
            lack = f"sh: {name}: a virtual phone lacks this command; real phones have it from {whose(name)}\n"
            assert (result.code, result.out, result.err) == (126, "", f"/system/bin/{lack}")
            assert lack in sh(f"'{name}' x").err


def test_every_command_of_a_virtual_phone_is_a_real_phones() -> None:
    """A command that no phone has would make scripts pass here that fail there."""
    assert set(COMMANDS.handlers) - MKSH - set(TOYBOX) - set(ANDROID) == {"su"}  # of rooted phones


def test_commands_and_options_are_those_of_the_release(sh: Sh, phone: Phone, seed: int) -> None:
    """Drawn from the table: what came later than a phone's release ends as on a phone, and what came before works."""
    draw = random.Random(seed)
    tools = [name for name in USES if name in COMMANDS.handlers and name != "env"]  # which runs another command
    dated = [(name, use) for name in tools for use in USES[name] if use.startswith("-")]
    for name, use in [("head", "-c"), ("sha256sum", ""), ("ps", "-A"), *draw.sample(dated, 10)]:
        first = since(name, use)
        for sdk in range(first - 2, first + 2):
            phone.profile = phone.profile.model_copy(update={"sdk": sdk})
            told = sh(f"{name} {use}")
            absent = sdk < since(name)
            assert (told.code == 127) == absent, (name, sdk, told)
            if name != "ps":  # the one before it took every word for a name
                assert ("Unknown option" in told.err) == (not absent and sdk < first), (name, use, sdk, told)


@pytest.mark.parametrize("status", [126, 127])
def test_what_a_maker_left_out_ends_with_the_shells_status(sh: Sh, phone: Phone, seed: int, status: int) -> None:
    for tool in random.Random(seed).sample(sorted({*TOYBOX, *ANDROID} & set(COMMANDS.handlers)), 5):
        phone.lacking = {tool: status}
        if since(tool) <= phone.profile.sdk:
            told = sh(f"{tool} x")
            assert (told.code, f"/system/bin/sh: {tool}: " in told.err) == (status, True)


def test_files(sh: Sh) -> None:
    done = sh(
        f"cd {TMP} && mkdir -p a/b && echo hello > a/b/x && echo more >> a/b/x && cp a/b/x a/y && mv a/y a/z && "
        "chmod 755 a/z && stat -c '%a %s' a/z && ls a && rm -rf a && ls"
    )
    assert (done.code, done.out, done.err) == (0, "755 11\nb\nz\n", "")
    over = sh(f"cd {TMP}; echo longer > x; echo new > y; chmod 711 y; mv -f y x; stat -c '%a' x; cat x; ls; mv x x; ls")
    assert (over.code, over.out, over.err) == (0, "711\nnew\nx\nx\n", "")


def test_globs_expand_where_they_are_not_quoted(sh: Sh) -> None:
    result = sh(f"cd {TMP}; echo 1 > 1.log; echo 2 > 2.log; cat *.log; echo '*.log' none*")
    assert result.out == "1\n2\n*.log none*\n"
    assert len(sh("cat /sys/class/thermal/thermal_zone*/temp").out.split()) == 4
    closed = sh("cat /sys/class/kgsl/*/gpuclk")
    assert closed.err == "cat: /sys/class/kgsl/kgsl-3d0/gpuclk: Permission denied\n", "a closed node has a name"


def test_pieces_of_files(sh: Sh, phone: Phone) -> None:
    phone.profile = load_profile("pixel_7")
    (phone.tree.root / "data/local/tmp/f").write_bytes(bytes(range(48, 58)))
    pieces = sh(f"tail -c +4 {TMP}/f; echo; tail -c 2 {TMP}/f; echo; head -c 3 {TMP}/f; echo; wc -c {TMP}/f")
    assert pieces.out == f"3456789\n89\n012\n10 {TMP}/f\n"


def test_sums_are_those_of_the_content(sh: Sh, phone: Phone) -> None:
    content = bytes(range(256)) * 999
    (phone.tree.root / "data/local/tmp/f").write_bytes(content)
    assert sh(f"sha256sum {TMP}/f").out == f"{hashlib.sha256(content).hexdigest()}  {TMP}/f\n"
    assert sh("sha1sum -b", stdin=content).out == f"{hashlib.sha1(content).hexdigest()}\n"


def test_getprop(sh: Sh) -> None:
    assert sh("getprop ro.product.model").out == "SM-G930V\n"
    assert sh("getprop ro.nothing").out == "\n"
    everything = sh("getprop").out
    assert "[ro.pocketfarm.source]: [virtual]\n" in everything
    assert "virtual" in sh("getprop ro.build.fingerprint").out
    assert sh("setprop ro.product.model x").code == 1
    assert sh("setprop debug.x 1; getprop debug.x").out == "1\n"


def test_settings_survive_the_phone(sh: Sh, phone: Phone) -> None:
    assert sh("settings get system screen_brightness").out == "128\n"
    assert sh("settings put system screen_brightness 10; settings get system screen_brightness").out == "10\n"
    assert sh("settings get global nothing").out == "null\n"
    again = Phone(phone.profile, 0, phone.folder, phone.table, None)
    assert again.settings["system"]["screen_brightness"] == "10"
    assert sh("settings delete system screen_brightness; settings get system screen_brightness").out.endswith("null\n")


def test_airplane_mode_needs_a_newer_android(sh: Sh, phone: Phone) -> None:
    refused = sh("cmd connectivity airplane-mode enable")
    assert (refused.code, refused.err) == (20, "cmd: Can't find service: connectivity\n")
    phone.profile = phone.profile.model_copy(update={"sdk": 33})
    sh("settings put global airplane_mode_on 1")
    assert sh("cmd connectivity airplane-mode").out == "disabled\n"  # the setting alone leaves the radios up
    assert sh("cmd connectivity airplane-mode enable; cmd connectivity airplane-mode").out == "enabled\n"
    assert sh("settings get global airplane_mode_on").out == "1\n"


def test_dumpsys_battery_freezes_and_thaws(sh: Sh, phone: Phone) -> None:
    assert "  level: 72\n" in sh("dumpsys battery").out
    assert "UPDATES STOPPED" not in sh("dumpsys battery").out
    sh("dumpsys battery set level 5; dumpsys battery unplug")
    phone.set_charge(0.5)
    frozen = sh("dumpsys battery").out
    assert "UPDATES STOPPED" in frozen
    assert "  level: 5\n" in frozen
    assert "UPDATES STOPPED" not in sh("dumpsys battery reset; dumpsys battery").out


def test_dumpsys_thermalservice_tells_hal_from_cache_and_override_from_heat(sh: Sh, phone: Phone) -> None:
    assert sh("dumpsys thermalservice").out == ""  # Android 8 has none
    phone.profile = phone.profile.model_copy(update={"sdk": 33})
    phone.body = replace(phone.body, skin_c=46.0)
    text = sh("cmd thermalservice override-status 0; dumpsys thermalservice").out
    assert "Thermal Status: 0\n" in text
    cached, _, hal = text.partition("Current temperatures from HAL:")
    assert "mValue=24.000, mType=3, mName=SKIN" in cached
    assert "mValue=46.000, mType=3, mName=SKIN, mStatus=3" in hal
    assert "Thermal Status: 3\n" in sh("cmd thermalservice reset; dumpsys thermalservice").out


def test_df_shows_what_is_left(sh: Sh, phone: Phone) -> None:
    def available() -> int:
        return int(sh(f"df -k {TMP}").out.splitlines()[1].split()[3])

    before = available()
    (phone.tree.root / "data/local/tmp/f").write_bytes(bytes(10 << 20))
    assert before - available() == 10 << 10
    phone.tree.full = True
    assert available() == 0
    assert sh(f"mkdir {TMP}/x").err == f"mkdir: {TMP}/x: No space left on device\n"
    assert "No space left on device" in sh(f"echo x > {TMP}/y").err


def test_executables_are_real_processes_inside_the_phone(sh: Sh, phone: Phone) -> None:
    program = phone.tree.root / "data/local/tmp/program"
    program.write_text(
        '#!/bin/sh\necho "$1 $POCKETFARM_APIS"; cat "$POCKETFARM_SYSROOT/sys/class/power_supply/battery/type"; cat; '
        "echo sad >&2; exit 9\n"
    )
    assert sh(f"{TMP}/program x").code == 126
    phone.pushed.note(program)
    result = sh(f"chmod +x {TMP}/program; cd {TMP}; ./program --file={TMP}/x", stdin=b"input\n")
    assert result.code == 9
    assert result.out == f"--file={phone.tree.root}/data/local/tmp/x opencl,vulkan,cpu\nBattery\ninput\n"
    assert result.err == "sad\n"


def test_a_killed_executable_says_by_which_signal(sh: Sh, phone: Phone) -> None:
    program = phone.tree.root / "data/local/tmp/program"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    phone.pushed.note(program)
    assert sh(f"{TMP}/program").code == 0x80 | 9


def test_processes_are_found_by_their_phone(sh: Sh, phone: Phone) -> None:
    sleeper = shutil.which("sleep")
    assert sleeper
    phone.pushed.note(Path(shutil.copy(sleeper, phone.tree.root / "data/local/tmp/sleeper")))
    script = f"{TMP}/sleeper 30 & sleep 0.3; pidof sleeper; pgrep -f 'sleeper 30'; cat /proc/$(pidof sleeper)/stat; "
    result = sh(script + "kill -0 $(pidof sleeper) && kill -9 $(pidof sleeper); wait; pidof sleeper")
    assert result.code == 1
    pid, same, stat = result.out.splitlines()
    assert pid == same
    assert stat.startswith(f"{pid} (sleeper)")
    assert sh(f"ls /proc/{pid}").code == 1


def test_the_root_cannot_be_left(sh: Sh, phone: Phone, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    assert sh("cat ../../../../../../../../etc/passwd").code == 1
    assert sh(f"cat {phone.tree.root}/../../secret").code == 1
    (phone.tree.root / "data/local/tmp/way_out").symlink_to(tmp_path)
    assert "Permission denied" in sh(f"cat {TMP}/way_out/secret").err
