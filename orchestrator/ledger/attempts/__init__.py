"""Attempts: begun with a growing token, ended by a record or by the sweeper, counted against job, device or host."""

from . import counted
from .begin import Start, begin, fail, mark_running
from .end import end
from .keep import Note, Prepared, Sent, keep_all, prepare, record_columns, seeming_job
from .replace import Pair, replace_all
