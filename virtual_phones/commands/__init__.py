"""Commands that a virtual phone answers without a process of its own."""

from . import android, dumpsys, files, flow, lookup, packages, perfetto, process, root, system, text
from .registry import Handler, find_command

__all__ = [
    "Handler",
    "android",
    "dumpsys",
    "files",
    "find_command",
    "flow",
    "lookup",
    "packages",
    "perfetto",
    "process",
    "root",
    "system",
    "text",
]
