"""A strategy that ended without what it was asked for."""

from __future__ import annotations

from .base import Model


class Stopped(Model):
    """Wholly, or in a part of the matrix."""

    why: str
    remedy: str = ""
    """The remedy: what to do."""
    devices: tuple[str, ...] = ()
    """The choice of devices; empty: not told."""

    @property
    def text(self) -> str:
        """Return the reason in a line."""
        where = f" on {', '.join(self.devices)}" if self.devices else ""
        return f"no more jobs{where}: {self.why}{f'; {self.remedy}' if self.remedy else ''}"
