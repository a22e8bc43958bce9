"""Commands that a virtual phone answers without a process of its own."""

from . import android, dumpsys, files, flow, packages, process, root, system, text
from .registry import COMMANDS, Handler

__all__ = [
    "COMMANDS",
    "Handler",
    "android",
    "dumpsys",
    "files",
    "flow",
    "packages",
    "process",
    "root",
    "system",
    "text",
]
