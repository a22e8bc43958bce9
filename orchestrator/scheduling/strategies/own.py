"""A user's own strategy: one Python file with a class `Strategy`, run in a process of its own with limits.

Whatever goes wrong in it is the file's fault and ends the experiment with what it has; the scheduler goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from orchestrator.model.errors import SpecError
from orchestrator.spec.expansion.run_order import Slot

from . import foreign_process
from .strategy import Place, Result

LIMIT_S = 10.0
"""The time for one answer, the start of the process in it."""


@dataclass(frozen=True)
class Question:
    """Everything that is known of the place."""

    place: Place
    results: list[Result]


QUESTION: TypeAdapter[Question] = TypeAdapter(Question)
ANSWER: TypeAdapter[tuple[list[Slot], bool]] = TypeAdapter(tuple[list[Slot], bool])
MOST = 1000
"""Jobs of one answer."""
TOLD = 500
"""Characters of what it said last before it failed."""


class OwnStrategy:
    """Asks the file."""

    stopped = None

    def __init__(self, place: Place, file: Path) -> None:
        self._place, self._file = place, file
        self._results: list[Result] = []
        self.done = False

    def tell(self, results: Sequence[Result]) -> None:
        self._results += results

    def ask(self) -> Sequence[Slot]:
        """Raises SpecError where the file does not answer as it should."""
        slots, self.done = self._answer()
        if len(slots) > MOST:
            raise self._refused(f"it asks for {len(slots)} jobs at once; at most {MOST}")
        return [Slot(slot.cell, self._place.candidates, slot.block) for slot in slots]

    def _answer(self) -> tuple[list[Slot], bool]:
        question = QUESTION.dump_json(Question(self._place, self._results))
        command = [sys.executable, "-m", "orchestrator.scheduling.strategies.own_process", str(self._file)]
        try:
            found = foreign_process.run(command, question, LIMIT_S)
        except TimeoutError as e:
            raise self._refused(str(e)) from e
        if foreign_process.OUTPUT_BYTES in (len(found.output), len(found.errors)):
            raise self._refused(f"it wrote more than {foreign_process.OUTPUT_BYTES >> 20} MiB")
        if found.status != 0:
            *_, last = found.errors[-TOLD * 4 :].decode(errors="replace").splitlines() or ["it ended without a word"]
            raise self._refused(last[-TOLD:])
        try:
            return ANSWER.validate_json(found.output)
        except ValidationError as e:
            raise self._refused(f"{e.errors()[0]['msg']} in what `ask` returned") from e

    def _refused(self, why: str) -> SpecError:
        choice = self._place.experiment.strategy
        return SpecError(
            f"strategy.file: {choice and choice.file}: {why}",
            remedy="mend the file, then run the experiment again (`farm run`)",
        )
