"""Commands that a virtual phone answers without a process of its own."""

from . import android, dumpsys, files, flow, process, system, text
from .registry import COMMANDS, Handler

__all__ = ["COMMANDS", "Handler", "android", "dumpsys", "files", "flow", "process", "system", "text"]
