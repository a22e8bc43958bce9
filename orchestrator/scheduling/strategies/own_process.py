"""The process of a user's own strategy: `python -m orchestrator.scheduling.strategies.own_process FILE`.

A question comes as JSON on standard input, the answer goes to standard output. What the file prints goes to standard
error.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
from typing import Any

from orchestrator.spec.expansion.run_order import Slot

from .foreign_process import limit_this_process
from .own import ANSWER, QUESTION, Question


def answer(file: str, question: Question) -> tuple[list[Slot], bool]:
    """Return what the class `Strategy` of a file asks for, and whether it is done then."""
    choice = question.place.experiment.strategy
    assert choice is not None
    strategy: Any = runpy.run_path(file)["Strategy"](question.place, **choice.options)
    strategy.tell(question.results)
    return list(strategy.ask()), bool(strategy.done)


def main() -> int:
    """Entry point; exit status 1, with the last line on standard error, where the file fails."""
    limit_this_process()
    sys.modules["orchestrator.strategies"] = sys.modules[str(__package__)]  # where files for 0.1.0 find `Slot`
    with contextlib.redirect_stdout(sys.stderr):
        try:
            found = answer(sys.argv[1], QUESTION.validate_json(sys.stdin.buffer.read()))
        except Exception as e:
            print(f"{type(e).__name__}: {e}", file=sys.stderr)
            return 1
    sys.stdout.buffer.write(ANSWER.dump_json(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
