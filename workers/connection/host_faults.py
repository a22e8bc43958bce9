"""Tell a fault of this machine (disk, memory, descriptors) from one of a phone or a job."""

from __future__ import annotations

import errno

from orchestrator.model.errors import HostFault

_ERRNOS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def is_of_host(error: BaseException) -> bool:
    """Return whether the machine itself refused something."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _ERRNOS)


def blamed(error: Exception) -> Exception:
    """A HostFault in the place of what the machine itself refused; anything else as it is."""
    if not is_of_host(error):
        return error
    remedy = "look at the disk, the memory and the limits (ulimit -a) of this farm host"
    return HostFault(f"this host could not go on: {error or type(error).__name__}", remedy=remedy)
