"""`python -m dashboards.boards`: write every dashboard's JSON."""

from __future__ import annotations

from pathlib import Path

from . import device, energy, experiment, fleet, health, nightly, queue, queueing
from .board import Board, as_json

FOLDER = Path(__file__).parents[1] / "grafana" / "boards"
BOARDS: tuple[Board, ...] = (
    fleet.BOARD, queue.BOARD, device.BOARD, experiment.BOARD, energy.BOARD, nightly.BOARD, queueing.BOARD,
    health.BOARD,
)  # fmt: skip


def main() -> None:
    for board in BOARDS:
        (FOLDER / f"{board.uid.removeprefix('pocketfarm-')}.json").write_text(as_json(board))


if __name__ == "__main__":
    main()
