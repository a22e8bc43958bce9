"""The one table of what a real phone's shell knows: command, option and sub-command -> first API level that has it.

24 stands for "at the floor or before". Sources: the manual page mksh(1); AOSP's `shell_and_utilities/README.md`
(commands up to Android 9); `external/toybox` by branch of Android 7.0 to 11 (`ALL_TOOLS`, and the option strings of
NEWTOY); `frameworks/base` for the rest. Virtual phones have the commands of their own release by it, and
`tests/unit/workers/test_android_releases.py` holds all that the farm sends to a phone against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

FLOOR_SDK = 24
"""Android 7: the oldest that the farm works with."""


def _by_name(releases: Mapping[int, str]) -> dict[str, int]:
    return {name: sdk for sdk, names in releases.items() for name in names.split()}


MKSH = frozenset(
    _by_name(
        {
            0: """
            . : [ [[ alias autoload bg bind break builtin case cd command continue dot echo eval exec exit export false
            fc fg functions getopts global hash history integer jobs kill let local login nameref print pwd r read
            readonly rename return select set shift source suspend test time times trap true type typeset ulimit umask
            unalias unset wait whence
            """
        }
    )
)
"""Builtins and reserved words of mksh."""

TOYBOX = _by_name(
    {
        24: """
        acpi base64 basename blockdev bzcat cal cat chcon chgrp chmod chown chroot cksum clear cmp comm cp cpio cut
        date dd df dirname dmesg dos2unix du env expand expr fallocate find flock free getenforce getprop grep groups
        head hostname hwclock id ifconfig inotifyd insmod ionice iorenice killall ln load_policy log logname losetup ls
        lsmod lsof lsusb md5sum mkdir mknod mkswap mktemp modinfo more mount mountpoint mv netstat nice nl nohup od
        paste patch pgrep pidof pkill pmap printenv printf prlimit ps readlink realpath renice restorecon rm rmdir
        rmmod runcon sed sendevent seq setenforce setprop setsid sha1sum sleep sort split start stat stop strings
        swapoff swapon sync sysctl tac tail tar taskset tee timeout top touch toybox tr truncate tty umount uname uniq
        unix2dos uptime usleep vmstat wc which whoami xargs xxd yes
        """,
        26: """
        bunzip2 bzip2 chrt diff file gunzip gzip lspci microcom mkfifo modprobe sha224sum sha256sum sha384sum sha512sum
        uudecode uuencode zcat
        """,
        27: "install",
        28: "fmt stty",
        29: "devmem fsync getconf iconv nc netcat nproc nsenter unlink unshare uuidgen watch",
        30: "chattr egrep fgrep lsattr readelf",
        31: "blkid getopt help logger pwdx rev rfkill setfattr traceroute vi",
    }
)
"""Commands of toybox, and of toolbox, BSD and bzip2 beside it."""

ANDROID = _by_name(
    {
        24: """
        am app_process appops atrace bmgr bu bugreport bugreportz cmd content dpm dumpstate dumpsys getevent hid ime
        input ip iptables keystore_cli_v2 logcat logwrapper lshal media monkey ndc ping ping6 pm procrank reboot
        requestsync run-as schedtest screencap screenrecord sensorservice service settings sgdisk sh showmap simpleperf
        sm sqlite3 ss svc tc telecom tracepath uiautomator vdc vr wm
        """,
        28: "awk perfetto traced traceur",
        29: "bc device_config",
        33: "uinput",
    }
)
"""Android's own commands."""

_USES: Mapping[str, Mapping[int, str]] = {
    "am": {24: "kill-all"},
    "cmd": {28: "power+set-mode", 30: "connectivity+airplane-mode power+set-fixed-performance-mode-enabled"},
    "df": {24: "-k"},
    "dumpsys": {24: "battery content deviceidle power", 29: "thermalservice", 31: "gpu"},
    "env": {24: "-i -u:", 27: "-0"},
    "grep": {24: "-F -H -a -c -h -i -q -s -v"},
    "head": {24: "-n:", 27: "-c: -q -v"},
    "id": {24: "-G -Z -g -n -r -u"},
    "input": {24: "keyevent"},
    "ln": {24: "-f -n -s -v"},
    "logcat": {24: "-b: -d -t: -v:"},
    "ls": {24: "-1 -a -d -l"},
    "mkdir": {24: "-m: -p -v"},
    "mv": {24: "-f -i -n -v"},
    "perfetto": {28: "--background -c: -o:", 29: "--txt"},
    "ps": {26: "-A -Z -e -f -k: -l -n -o: -p: -u: -w"},
    "rm": {24: "-R -f -i -r"},
    "settings": {24: "delete get list put"},
    "sha1sum": {24: "-b"},
    "sha256sum": {26: "-b"},
    "sh": {24: "-c:"},
    "stat": {24: "-L -c: -f -t"},
    "svc": {24: "data help nfc power usb wifi", 26: "bluetooth"},
    "tail": {24: "-c: -f -n:"},
    "wm": {24: "dismiss-keyguard"},
}
"""Options (a colon: with a value) and sub-commands (their words joined by `+`), of the commands that the farm uses."""

USES = {
    command: {use.rstrip(":"): sdk for sdk, uses in releases.items() for use in uses.split()}
    for command, releases in _USES.items()
}
_WITH_VALUE = {
    command: {use[1] for uses in releases.values() for use in uses.split() if use.startswith("-") and use[-1] == ":"}
    for command, releases in _USES.items()
}


def whose(name: str) -> str:
    """Return what provides a name on a real phone: `mksh`, `toybox` or `Android`; empty where nobody does."""
    sources = {"mksh": MKSH, "toybox": TOYBOX, "Android": ANDROID}
    return next((source for source, names in sources.items() if name in names), "")


def since(command: str, use: str = "") -> int:
    """Return the first API level that has a command, and one of its options or sub-commands. Raises KeyError."""
    own = 0 if command in MKSH else (TOYBOX | ANDROID)[command]
    return max(own, USES[command][use]) if use else own


def uses(argv: Sequence[str]) -> Iterator[str]:
    """Options of a command line as `-x`, or `--name`; of a command that has sub-commands the one that it names."""
    command, *words = argv
    if command in MKSH or command not in USES:
        yield from (word for word in words if command not in MKSH and word.startswith("-") and word != "-")
        return
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        letters = [] if word.startswith("--") else list(word[1:])
        if not letters:
            yield word
        for place, letter in enumerate(letters):
            yield f"-{letter}"
            if letter in _WITH_VALUE[command]:
                del words[: place + 1 == len(letters)]
                break
    named = [use for use in USES[command] if not use.startswith("-")]
    if named and words:
        yield next((use for use in named if words[: use.count("+") + 1] == use.split("+")), words[0])


def later_option(argv: Sequence[str], sdk: int) -> str:
    """The first option of a command line that came after this API level; empty where there is none."""
    known = USES.get(argv[0], {})
    return next((use for use in uses(argv) if use.startswith("-") and known.get(use, 0) > sdk), "")
