"""A block before its agent starts: what the agent gets, and what the device is asked for that."""

from __future__ import annotations

from dataclasses import dataclass

from workers.devices.fleet import Member
from workers.devices.install import hash_command, place_of
from workers.engines.agent import preparing
from workers.engines.engine import Trips
from workers.engines.models import Arrays
from workers.engines.pocketfarm.plans.plan_store import StoredPlan

from .block import Block
from .ports import Inputs
from .request import make_request
from .run_request import RunRequest

PLANS = "plans"
"""Folder of the device for plans."""


@dataclass(frozen=True)
class Prepared:
    """A block as it is to run on a device."""

    stored: StoredPlan
    block: Block
    inputs: Inputs
    request: RunRequest

    @classmethod
    def of(cls, member: Member, stored: StoredPlan, inputs: Arrays, block: Block) -> Prepared:
        connection = member.connection
        pushed, plan = Inputs.of(connection, stored, inputs), place_of(connection, PLANS, stored.plan_hash)
        folder = f"{connection.folder}/runs/{block.name.replace('/', '-')}"
        return cls(stored, block, pushed, make_request(member, stored, block, folder, plan, pushed.paths))

    def is_of(self, stored: StoredPlan, block: Block) -> bool:
        return self.stored is stored and self.block == block

    def commands(self, verified: set[str]) -> list[list[str]]:
        """Return what is asked of the device in one trip: nothing where a run of its own comes first. `verified`:
        folders whose files need not be compared."""
        if self.block.is_primed:
            return []
        plan = self.request.plan
        files = [[f"{plan}/{name}" for name in self.stored.files]] if plan not in verified else []
        files += [
            [path] for path in dict.fromkeys(self.inputs.paths.values()) if path.rpartition("/")[0] not in verified
        ]
        return [*map(hash_command, files), fresh(self.request.folder), *preparing(self.request)]

    @property
    def undoing(self) -> list[str]:
        """The command that removes from the device what a run leaves there."""
        return ["rm", "-rf", self.request.folder]


def expect(trips: Trips, member: Member, stored: StoredPlan, inputs: Arrays, block: Block) -> Prepared:
    """Return the next block of a session; who calls asks the device for it through `trips.ahead`."""
    known = trips.expected
    if not (isinstance(known, Prepared) and known.is_of(stored, block)):
        trips.expected = known = Prepared.of(member, stored, inputs, block)
    return known


def prepared_for(trips: Trips, member: Member, stored: StoredPlan, inputs: Arrays, block: Block) -> Prepared:
    """Return the block that begins, for which the device has been asked."""
    expected, trips.expected = trips.expected, None
    if isinstance(expected, Prepared) and expected.is_of(stored, block):
        return expected
    prepared = Prepared.of(member, stored, inputs, block)
    if commands := prepared.commands(trips.verified):
        trips.ahead.ask(commands, deadline_s=60.0)
    return prepared


def fresh(folder: str) -> list[str]:
    """Removes what an earlier try of the same run left; `preparing` makes its folders."""
    return ["rm", "-rf", folder]
