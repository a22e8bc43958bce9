"""The first jobs of a lane, made when somebody looks at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from orchestrator.ledger.rows import AnyRow
from orchestrator.model.live.queue_view import WaitingJob


class Untried(Sequence[WaitingJob]):
    """A turn hardly ever needs more than one of them."""

    def __init__(self, rows: Sequence[AnyRow], make: Callable[[AnyRow], WaitingJob]) -> None:
        self._rows, self._make = rows, make
        self._made: dict[int, WaitingJob] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> WaitingJob: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[WaitingJob]: ...
    def __getitem__(self, place: int | slice) -> WaitingJob | Sequence[WaitingJob]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        if place not in self._made:
            self._made[place] = self._make(self._rows[place])
        return self._made[place]
