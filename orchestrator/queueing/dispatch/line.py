"""A waiting line: by priority, then by the policy's rank, then by order of arrival; batches are of one class."""

from __future__ import annotations

from heapq import heappop, heappush

from .request import Request

Entry = tuple[int, float, int, Request]


class Line:
    """Requests that wait; a heap for each class."""

    __slots__ = ("_by_class", "_count")

    def __init__(self) -> None:
        self._by_class: dict[int, list[Entry]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def push(self, request: Request, rank: float) -> None:
        heap = self._by_class.get(request.kind)
        if heap is None:
            heap = self._by_class[request.kind] = []
        heappush(heap, (-request.priority, rank, request.number, request))
        self._count += 1

    def head(self) -> Request:
        """Return who is next. The line is not empty."""
        return self._first()[0][3]

    def waiting_of(self, kind: int) -> int:
        return len(self._by_class.get(kind, ()))

    def pop(self, most: int = 1) -> list[Request]:
        """The next one, with up to `most` in all of its class."""
        heap = self._first()
        taken = [heappop(heap)[3] for _ in range(min(most, len(heap)))]
        self._count -= len(taken)
        return taken

    def _first(self) -> list[Entry]:
        heaps = self._by_class
        if len(heaps) == 1:
            return next(iter(heaps.values()))
        return min((heap for heap in heaps.values() if heap), key=lambda heap: heap[0][:3])
