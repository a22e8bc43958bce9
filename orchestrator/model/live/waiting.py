"""The reason why a job waits: a kind out of a fixed set for programs and metrics, and words for people."""

from __future__ import annotations

from orchestrator.model.base import Model, Word


class WaitKind(Word):
    """The kind of a job's wait. The set is fixed: it is a label of `farm_jobs_waiting`."""

    BUSY = "busy"
    """Its device works on another job."""
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    PROBING = "probing"
    SICK = "sick"
    QUARANTINED = "quarantined"
    DRAINING = "draining"
    """Its host was told to take nothing new."""
    HELD = "held"
    """A person has their device for themselves."""
    BUSY_ELSEWHERE = "busy_elsewhere"
    """Another farm or host has the phone."""
    UNFIT = "unfit"
    """Its host's worker is of a version that this farm does not work with."""
    RESTING = "resting"
    """Its device pauses after a lost attempt, or until it has cooled."""
    AVOIDED = "avoided"
    """A device is free, but an earlier attempt was lost there or it cannot meet the conditions, and others can."""
    QUOTA = "quota"
    """Its project has used the phone-hours that it has for this week."""
    RETRY = "retry"
    """The job pauses before its next attempt."""
    HOST_FULL = "host_full"
    """The host runs as many sessions as it may."""
    BATTERY = "battery"
    """Level of the battery."""
    TEMPERATURE = "temperature"
    """Battery, skin, thermal status, or a battery that is not settled."""
    STORAGE = "storage"
    SUPPLY = "supply"
    """A supply is connected, and the experiment wants the phone to run from its battery."""
    QUEUED = "queued"
    """Nothing is in its way: the scheduler starts it soon."""
    UNKNOWN = "unknown"
    """No scheduler has said anything for a while: it does not run, or Redis is away."""


class WaitReason(Model):
    """The reason why a job waits, as the latest placement found."""

    kind: WaitKind
    text: str
    """The text for people, with the figures: `battery at 64 %, the experiment wants at least 70 %`."""
