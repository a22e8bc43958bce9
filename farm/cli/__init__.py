"""The command line: `farm`. A command parses, calls, renders; one module per group of commands."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status. Loading the commands takes a moment, in which Ctrl-C is no error either."""
    try:
        from . import app
    except KeyboardInterrupt:
        return 130
    return app.main(arguments)
