"""The agent, driven on a device by whichever engine needs it: started detached, followed through lost cables."""

from .drive import drive, quietly, run_folder
from .exec_program import ExecProgram, lines_of
from .failure import DeviceSlept, raise_for, raise_if_slept
from .kill_log import is_crash
from .printed_program import PrintedProgram, came_one_by_one, placed
from .process import AgentRun, Follower, Started, has_turn, preparing, start_agent
from .program_failure import CAUSES, OUT_OF_MEMORY, Causes, ProgramFailed, cause_in, last_words, raise_failure
from .request import AgentRequest, BlockRequest, expected_s, tenths, words
