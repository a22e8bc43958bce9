"""The acts of a page. The farm brings them; here they are offered, checked and told."""

from __future__ import annotations

from typing import Protocol


class Actions(Protocol):
    """Each returns what to tell, and raises FarmError."""

    def cancel(self, target: str) -> str:
        """Cancel what is open of an experiment, or one job."""
        ...

    def retry(self, target: str) -> str:
        """Retry what was lost or failed of an experiment, or one job."""
        ...

    def hold(self, serial: str, who: str, lasting: str, note: str) -> str:
        """A device for a person; `lasting` as `farm hold --for` takes it, empty: until it is released."""
        ...

    def release(self, name: str) -> str:
        """A device that is held, or a device or host in quarantine."""
        ...

    def restore(self, serial: str) -> str:
        """Restore what a crash left changed on a phone of this host."""
        ...
