"""The phone's file system: a real folder on the host, seen through the rights of Android's shell user."""

from __future__ import annotations

import contextlib
import copy
import errno
import fnmatch
import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

_BLOCK_BYTES = 4096
TRACES = "/data/misc/perfetto-traces"
"""The folder where perfetto writes and the shell reads and removes."""
WRITABLE = ("/data/local/tmp", "/sdcard", "/storage/emulated/0", TRACES)
_OWN = ("/sys/", "/proc/")
"""Nobody makes links there but the phone itself, and they stay inside."""
_FOLDERS = (
    *WRITABLE[:1],
    TRACES,
    "/storage/emulated/0",
    "/system/bin",
    "/vendor/lib64",
    "/proc",
    "/sys",
    "/dev",
    "/cache",
)


def refusal(number: int, path: str) -> OSError:
    """An OSError as the phone's kernel would return it."""
    return OSError(number, os.strerror(number), path)


def _no_host_path(_path: str) -> Path | None:
    return None


def _followed(path: str) -> str:
    """Its real path. The kernel follows links that lead somewhere, all at once."""
    try:
        handle = os.open(path, os.O_PATH)
    except OSError:
        return os.path.realpath(path)
    try:
        return os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 (asked for each path of each command)
    finally:
        os.close(handle)


class Tree:
    """Maps phone paths to host paths, and checks them as the phone would. All methods raise OSError with the
    phone's path in `filename`."""

    def __init__(self, root: Path, *, capacity_bytes: int, denied: tuple[str, ...] = ()) -> None:
        self.root = root.absolute()
        for folder in _FOLDERS:
            (self.root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        sdcard = self.root / "sdcard"
        if not sdcard.is_symlink():
            sdcard.symlink_to("storage/emulated/0")
        self.root = Path(os.path.realpath(self.root))
        self.full = False
        """Fault: no room is left."""
        self.live: dict[str, Callable[[], str]] = {}
        """Files whose text is made when they are read, e.g. /proc/uptime."""
        self.pass_through: Callable[[str], Path | None] = _no_host_path
        """Phone paths that are the host's own, e.g. /proc/<pid of an agent>; None for all others."""
        self.closed: dict[str, str] = {}
        """Text of the nodes that only root may read."""
        self._capacity_bytes = capacity_bytes
        self._denied = denied
        self._denies = re.compile("|".join(map(fnmatch.translate, denied)) or r"(?!)").match
        self._is_root = False

    def as_root(self) -> Tree:
        """The same files through root's eyes, for one command."""
        view = copy.copy(self)
        view._is_root = True
        return view

    def normal(self, path: str, cwd: str = "/") -> str:
        """The absolute phone path, without `.` and `..`. A host path below the root is accepted as well, because an
        agent's output may name one."""
        if path[:1] == "/" and path[-1] != "/" and "//" not in path and "/." not in path:
            absolute = path
        else:
            absolute = "/" + posixpath.normpath(posixpath.join(cwd, path)).lstrip("/")
        root = str(self.root)
        if absolute == root or absolute.startswith(root + "/"):
            return absolute[len(root) :] or "/"
        return absolute

    def host(self, path: str, cwd: str = "/") -> Path:
        """Host path of a phone path; never outside of the root, whatever links there are."""
        absolute = self.normal(path, cwd)
        if passed := self.pass_through(absolute):
            return passed
        target = os.path.join(self.root, absolute.lstrip("/"))  # noqa: PTH118 (a Path is made once it is known)
        if not (absolute == "/" or absolute.startswith(_OWN)) and not (
            self._holds(posixpath.dirname(target)) and (not os.path.islink(target) or self._holds(target))  # noqa: PTH114
        ):
            raise refusal(errno.EACCES, path)
        return Path(target)

    def _holds(self, target: str) -> bool:
        """Return whether a host path, followed to its end, lies in this phone."""
        real, root = _followed(target), str(self.root)
        return real == root or real.startswith(f"{root}/")

    def link(self, link: Path, target: str) -> None:
        """Make a symbolic link to a phone path. Raises OSError where it would lead out of the phone."""
        words = str(self.host(target)) if target.startswith("/") else target
        if not self._holds(str(link.parent / words)):
            raise refusal(errno.EACCES, target)
        link.symlink_to(words)

    def check_readable(self, path: str, cwd: str = "/") -> None:
        """Raises PermissionError where the profile denies this node to the shell user."""
        if not self._is_root and self._denies(self.normal(path, cwd)):
            raise refusal(errno.EACCES, path)

    def is_closed(self, path: str, cwd: str = "/") -> bool:
        """Return whether this is a node that only root may read, and that is therefore no file."""
        return self.normal(path, cwd) in self.closed

    def check_writable(self, path: str, cwd: str = "/") -> None:
        """Raises PermissionError or OSError(EROFS) outside of the folders that this user may write. What root writes to
        nodes does not come here, see `Phone.write_node`."""
        absolute = self.normal(path, cwd)
        if self._is_root and not absolute.startswith(("/system", "/vendor", "/sys", "/proc")):
            return
        if absolute.startswith(tuple(f"{folder}/" for folder in WRITABLE)) or absolute in (*WRITABLE, "/dev/null"):
            return
        read_only = absolute.startswith(("/system", "/vendor"))
        raise refusal(errno.EROFS if read_only else errno.EACCES, path)

    def read(self, path: str, cwd: str = "/") -> bytes:
        """Whole content of a file."""
        self.check_readable(path, cwd)
        normal = self.normal(path, cwd)
        if maker := self.live.get(normal):
            return maker().encode()
        if self._is_root and normal in self.closed:
            return self.closed[normal].encode()
        try:
            with open(self.host(normal), "rb", buffering=0) as file:  # noqa: PTH123 (read for each command)
                return file.readall()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
            raise refusal(error.errno or errno.EIO, path) from error

    def readable_file(self, path: str, cwd: str = "/") -> Path:
        """Host path of an existing file that may be read."""
        self.check_readable(path, cwd)
        return self._checked(path, cwd)

    def _checked(self, path: str, cwd: str) -> Path:
        target = self.host(path, cwd)
        if not os.path.lexists(target):
            raise refusal(errno.ENOENT, path)
        if target.is_dir():
            raise refusal(errno.EISDIR, path)
        return target

    def writable_file(self, path: str, cwd: str = "/") -> Path:
        """Host path of a file that may be made or overwritten; its folder exists and there is room."""
        self.check_writable(path, cwd)
        target = self.host(path, cwd)
        if not target.parent.is_dir():
            raise refusal(errno.ENOENT, path)
        if target.is_dir():
            raise refusal(errno.EISDIR, path)
        self.claim(1, path)
        return target

    def claim(self, size: int, path: str) -> None:
        """Raises OSError(ENOSPC) unless `size` bytes are free. What fits into a block is not worth counting for."""
        if self.full or (size > _BLOCK_BYTES and size > self.free_bytes()):
            raise refusal(errno.ENOSPC, path)

    def used_bytes(self) -> int:
        """Return the size of the files that were put on the phone."""
        total, folders = 0, [f"{self.root}/data/local/tmp", f"{self.root}/storage"]
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except OSError:  # removed meanwhile
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_size
        return total

    def free_bytes(self) -> int:
        """Room that is left on /data."""
        return 0 if self.full else max(0, self._capacity_bytes - self.used_bytes())

    def denied_names(self, folder: str) -> set[str]:
        """Names below a folder that are there, but closed to the shell user."""
        return {Path(path).name for path in self._denied if posixpath.dirname(path) == folder}
