"""The matrix, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.spec.expansion.run_order import Slot

from .strategy import Result


class Grid:
    """Asks for nothing beyond what every experiment begins with."""

    done = True
    stopped = None

    def tell(self, results: Sequence[Result]) -> None:
        pass

    def ask(self) -> Sequence[Slot]:
        return ()
