"""The ledger: the database that owns experiments, jobs, attempts and records.

One transaction a call; threads may share it. Every attempt gets a fencing token that only grows. A record is kept once
per (job, attempt), and only from the job's newest token; a job whose attempt was lost waits again until its retry
budget is used up.
"""

from .attempts import Start
from .figures import Apart, Renewed
from .incoming.imports import Imported, Tried
from .ledger import Ledger
from .queue.listed import AttemptRow, JobPage, ListedJob
from .queue.news import WaitingLane
from .queue.outlook import Outlook, UnderWay, Work
from .rows import (
    AuditRow,
    DeadRecord,
    ExperimentRow,
    Hold,
    HostRow,
    HostState,
    JobRow,
    JobState,
    KeepResult,
    Lane,
    Quarantine,
    RunningRow,
)
from .runs.nights import NightText, Schedule
from .runs.queueing import QueueRun, QueueRunBody
