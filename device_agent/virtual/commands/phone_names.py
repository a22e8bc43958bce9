"""Names that a real phone's shell knows: what a virtual phone lacks of them is told as its own lack.

Sources: the manual page mksh(1), and AOSP's `system/core/shell_and_utilities/README.md` (commands up to Android 9).
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MKSH = _names(
    """
    . : [ [[ alias autoload bg bind break builtin case cd command continue dot echo eval exec exit export false fc
    fg functions getopts global hash history integer jobs kill let local login nameref print pwd r read readonly
    rename return select set shift source suspend test time times trap true type typeset ulimit umask unalias unset
    wait whence
    """
)
"""Builtins and reserved words of mksh."""

TOYBOX = _names(
    """
    acpi base64 basename blkid blockdev bunzip2 bzcat bzip2 cal cat chattr chcon chgrp chmod chown chroot chrt
    cksum clear cmp comm cp cpio cut date dd devmem df diff dirname dmesg dos2unix du egrep env expand expr
    fallocate fgrep file find flock fmt free fsync getconf getenforce getopt getprop grep groups gunzip gzip head
    help hostname hwclock iconv id ifconfig inotifyd insmod install ionice iorenice killall ln load_policy log
    logger logname losetup ls lsattr lsmod lsof lspci lsusb md5sum microcom mkdir mkfifo mknod mkswap mktemp
    modinfo modprobe more mount mountpoint mv nc netcat netstat nice nl nohup nproc nsenter od paste patch pgrep
    pidof pkill pmap printenv printf prlimit ps pwdx readelf readlink realpath renice restorecon rev rfkill rm
    rmdir rmmod runcon sed sendevent seq setenforce setfattr setprop setsid sha1sum sha224sum sha256sum sha384sum
    sha512sum sleep sort split start stat stop strings stty swapoff swapon sync sysctl tac tail tar taskset tee
    timeout top touch toybox tr traceroute truncate tty umount uname uniq unix2dos unlink unshare uptime usleep
    uudecode uuencode uuidgen vi vmstat watch wc which whoami xargs xxd yes zcat
    """
)
"""Commands of toybox, and the few that bzip2 and BSD provide."""

ANDROID = _names(
    """
    am app_process appops atrace awk bc bmgr bu bugreport bugreportz cmd content device_config dpm dumpstate
    dumpsys getevent hid ime input ip iptables keystore_cli_v2 logcat logwrapper lshal media monkey ndc perfetto
    ping ping6 pm procrank reboot requestsync run-as schedtest screencap screenrecord sensorservice service
    settings sgdisk sh showmap simpleperf sm sqlite3 ss svc tc telecom tracepath traced traceur uiautomator uinput
    vdc vr wm
    """
)
"""Android's own commands."""


def whose(name: str) -> str:
    """What provides a name on a real phone: `mksh`, `toybox` or `Android`; empty where nobody does."""
    sources = {"mksh": MKSH, "toybox": TOYBOX, "Android": ANDROID}
    return next((source for source, names in sources.items() if name in names), "")
