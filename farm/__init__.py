"""The command line, the supervisor behind `farm up`, the doctor, and the farm from Python (`from farm import Farm`)."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Farm

__all__ = ["Farm"]


def __getattr__(name: str) -> Any:
    """`Farm`, for those who ask for it: no command pays for its imports."""
    if name == "Farm":
        from .api import Farm

        return Farm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
