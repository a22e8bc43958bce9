"""The errors of the farm: every one is Stable or Transient.

    FarmError
    |-- StableError        the request cannot work; another attempt would fail the same way: tell the person
    |   |-- SpecError          an experiment file is wrong: file, line, field, what is allowed
    |   |-- ModelFileError     an ONNX file or input cannot be used
    |   |-- TableError         a table that somebody recorded cannot be read: file, line, column, what is allowed
    |   |-- NotAllowed         who asks has no right to it
    |   |-- Unsupported        the device lacks what is asked
    |   |-- UnknownName        no experiment, job, column or result has this name
    |   |-- NoData             the records lack what a figure needs
    |   |-- NotComparable      figures of different things would be taken together
    |   |-- Unstorable         a record that the ledger can never keep as it is: set aside
    |   |   `-- Forged         a record that another host sends than the one that has the attempt
    |   |-- Unreadable         a stored row or assignment that this version cannot read
    |   |-- RecordTooLong      a block measured more than the farm can keep of one
    |   |-- AgentFault         the agent reported an error of the workload itself
    |   `-- SetupError         this machine lacks a part, or a part has the wrong version
    `-- TransientError     phone, cable or host failed: another attempt, elsewhere if need be
        |-- TransportLost      the connection to the device went away or timed out
        |   `-- DeviceSlow         it is there, but does not end a command in its time
        |-- DeviceBusy         somebody else holds the device
        |-- KeyTaken           another request with the same key is under way
        |-- DeviceSick         storage full, garbage from the agent, failed verification: counts towards quarantine
        |-- ConditionNotMet    hot, charging, flat: a schedulable fact, with the time when it may be met
        |-- LeaseLost          our fencing token is no longer the newest: stop and leave the device alone
        |-- FileUnavailable    a file of the experiment cannot be fetched to this host
        `-- ServiceDown        Redis, adb server or ledger is away

A message says what happened, on which device, and what to do.
"""

from __future__ import annotations


class FarmError(Exception):
    """Root of all errors of the farm.

    `cause` is a stable, bounded word for metrics and records; `device` the serial, where one is concerned;
    `remedy` one line that says what to do.
    """

    cause = "error"

    def __init__(self, message: str, *, device: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message)
        self.device = device
        self.remedy = remedy

    def __str__(self) -> str:
        where = f"[{self.device}] " if self.device else ""
        mend = f"\n  remedy: {self.remedy}" if self.remedy else ""
        return f"{where}{super().__str__()}{mend}"


class StableError(FarmError):
    """Another attempt would fail the same way."""

    cause = "stable"


class SpecError(StableError):
    cause = "spec"


class ModelFileError(StableError):
    cause = "model_file"


class TableError(StableError):
    """A table that somebody recorded cannot be read; each says what to do about it."""

    cause = "table"

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message, remedy=remedy)


class Unsupported(StableError):
    cause = "unsupported"


class NotAllowed(StableError):
    """The person who asks has no right to it."""

    cause = "not_allowed"


class UnknownName(StableError):
    """No experiment, job, column or result has the name that was given."""

    cause = "unknown_name"


class NoData(StableError):
    """The records lack what a figure needs."""

    cause = "no_data"


class NotComparable(StableError):
    """Figures of different things would be taken together."""

    cause = "not_comparable"


class Unstorable(StableError):
    """A record that the ledger can never keep as it is: it is no record, or not of an attempt that the ledger began."""

    cause = "unstorable"


class Forged(Unstorable):
    """A record of an attempt that was handed to another host than the one that sends it."""

    cause = "forged"


class Unreadable(StableError):
    """A stored row or an assignment that this version cannot read: it is damaged, or another version wrote it."""

    cause = "unreadable"


class AgentFault(StableError):
    cause = "agent_fault"


class RecordTooLong(StableError):
    """A block measured more than the farm can keep of one."""

    cause = "record_too_long"


class SetupError(StableError):
    cause = "setup"


class TransientError(FarmError):
    """Phone, cable or host failed; the job may succeed in another attempt."""

    cause = "transient"


class TransportLost(TransientError):
    cause = "transport_lost"


class AdbDown(TransportLost):
    """The adb server of the host went away or was started anew: the phones behind it are well."""

    cause = "adb_down"


class DeviceSlow(TransportLost):
    """A device that is connected and answers, but does not end a command within its time."""

    cause = "slow"


class DeviceAway(TransportLost):
    """A device was gone, or not well, before its job had begun: nothing was tried."""

    cause = "device_away"


class DeviceBusy(TransientError):
    cause = "device_busy"


class KeyTaken(TransientError):
    """Another request with the same key is under way, or has just ended."""

    cause = "key_taken"


class DeviceSick(TransientError):
    cause = "device_sick"


class ConditionNotMet(TransientError):
    """A condition of the experiment is not met now; `retry_after_s` says when it may be."""

    cause = "condition_not_met"

    def __init__(
        self, message: str, *, device: str | None = None, remedy: str | None = None, retry_after_s: float = 60.0
    ) -> None:
        super().__init__(message, device=device, remedy=remedy)
        self.retry_after_s = retry_after_s


class LeaseLost(TransientError):
    cause = "lease_lost"


class HostFault(TransientError):
    """The machine of the farm host: its disk, its memory, its descriptors."""

    cause = "host_fault"


class FileUnavailable(HostFault):
    """A file of the experiment cannot be fetched to this host: the host's fault, not the job's."""

    cause = "file_unavailable"


class ServiceDown(TransientError):
    cause = "service_down"
