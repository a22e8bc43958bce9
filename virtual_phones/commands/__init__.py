"""Commands that a virtual phone answers without a process of its own."""

from . import android, dumpsys, files, flow, lookup, packages, perfetto, process, root, screen, system, text  # noqa: F401
from .table import COMMANDS as COMMANDS
