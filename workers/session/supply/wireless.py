"""A phone that is reached over the network hangs on no cable of this host: there is nothing to cut.

Whether it runs from its battery, the agent waits to see."""

from __future__ import annotations

from typing import Any

from orchestrator.model.enrolment import SupplyWay


class NoCable:
    """Implements `Switch` as its null."""

    way: SupplyWay = "wireless"
    needs_device = False

    def parameters(self) -> dict[str, Any]:
        return {}

    def cut(self) -> None: ...

    def restore(self) -> None: ...
