"""Our own engine: the compiler on the host makes plans, the agent on the device runs them."""

from __future__ import annotations

from orchestrator.model.device import OURS
from workers.engines.engine import Engine, Host, Work

from .doubts import DOUBTS
from .plans.plan_store import Plans
from .program import CAUSES, PlanProgram


class PocketfarmEngine(Engine):
    name, takes = OURS.name, OURS.takes
    doubts, causes = DOUBTS, CAUSES

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.plans = Plans(host.state, host.models)

    def prepare(self, work: Work) -> PlanProgram:
        return PlanProgram.of(self.host, self.plans, work)


ENGINE = PocketfarmEngine
