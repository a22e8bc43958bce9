"""Check the conditions of an experiment on a phone: whether they can be met, and whether they are met now."""

from __future__ import annotations

from pathlib import Path

from orchestrator.model.device import DeviceState
from orchestrator.model.errors import ConditionNotMet, Unsupported
from orchestrator.model.experiment import Conditions
from orchestrator.model.record import ConditionProof
from orchestrator.model.wiring import WiredDevice
from workers.devices.fleet import Member

from .conditions import GATES, SETTINGS, cores_for
from .conditions.settled import no_reference
from .supply import Switch, find_switch


def check_possible(
    member: Member, conditions: Conditions, wired: WiredDevice, state: Path, reference_c: float | None
) -> tuple[str, Switch | None]:
    """Return what this phone can do at all, before any time is spent: the cores that the agent may use, and the switch
    of its supply where that is to be cut. The caller holds the device's lock; nothing is changed for long.

    Raises Unsupported, TransportLost. Of the conditions a workstation has the cores alone.
    """
    if member.facts.kind != "phone":
        return cores_for(member.connection, conditions.affinity), None
    serial = member.facts.serial
    try:
        if conditions.settled and reference_c is None:
            raise no_reference()
        for setting in SETTINGS.values():
            if setting.wanted(conditions):
                setting.check(member.connection)
        cores = cores_for(member.connection, conditions.affinity)
        return cores, find_switch(member, wired, state) if conditions.supply == "cut" else None
    except Unsupported as e:
        e.device = serial
        raise


def check_gates(serial: str, state: DeviceState, conditions: Conditions, reference_c: float | None = None) -> None:
    """Raises ConditionNotMet with all that is not met, and the longest time to wait."""
    unmet: list[ConditionNotMet] = []
    for gate in GATES:
        try:
            gate.check(state, conditions, reference_c)
        except ConditionNotMet as e:
            unmet.append(e)
    if unmet:
        raise ConditionNotMet(
            "; ".join(str(e.args[0]) for e in unmet),
            device=serial,
            remedy="; ".join(e.remedy or "" for e in unmet),
            retry_after_s=max(e.retry_after_s for e in unmet),
        )


def proofs_of(state: DeviceState, conditions: Conditions) -> list[ConditionProof]:
    """Return what the open gates saw; what the phone does not tell is unproven."""
    wanted = ((gate, gate.wanted(conditions)) for gate in GATES)
    return [
        ConditionProof(name=gate.name, wanted=words, before=gate.describe(state), proven=bool(gate.describe(state)))
        for gate, words in wanted
        if words
    ]


def affinity_proof(
    conditions: Conditions, cores: str, bound: tuple[int, ...], *, is_virtual: bool
) -> tuple[ConditionProof, ...]:
    """`cores`: to which the agent was to bind itself; `bound`: those that it read back, empty where it told none.

    A virtual phone's cores are shares of the host's, which are read back: they prove nothing.
    """
    if not cores:
        return ()
    read = ",".join(map(str, sorted(bound)))
    held = f"cores {read}{' of the host' * is_virtual}" if bound else ""
    proven = read == cores and not is_virtual
    return (ConditionProof(name="affinity", wanted=f"{conditions.affinity}: {cores}", held=held, proven=proven),)
