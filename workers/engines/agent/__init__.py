"""The agent, driven on a device by whichever engine needs it: started detached, followed through lost cables."""

from __future__ import annotations

from .drive import drive, quietly, run_folder
from .exec_program import ExecProgram, lines_of
from .failure import DeviceSlept, raise_for, raise_if_slept
from .kill_log import is_crash
from .process import AgentRun, Follower, Started, has_turn, preparing, start_agent
from .program_failure import ProgramFailed, last_words, raise_failure
from .request import AgentRequest, BlockRequest, words

__all__ = [
    "AgentRequest", "AgentRun", "BlockRequest", "DeviceSlept", "ExecProgram", "Follower", "ProgramFailed", "Started",
    "drive", "has_turn", "is_crash", "last_words", "lines_of", "preparing", "quietly", "raise_failure", "raise_for",
    "raise_if_slept", "run_folder", "start_agent", "words",
]  # fmt: skip
