"""`python -m tests.fuzz MINUTES`: fuzz every reader in turn, and the agent's plan reader; what fails is kept.

Exit status 1 where a fault was found: its input lies in `corpus/<boundary>/`, and `pytest tests/fuzz` fails until it is
mended.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time

from .boundaries import BOUNDARIES, Boundary
from .mutations import mutate
from .plan_reader import fuzz_plans
from .test_boundaries import CORPUS, play


def fuzz(name: str, boundary: Boundary, seconds: float) -> int:
    """Number of different faults; each kind of error at each place is kept once."""
    draw, seeds, places = random.Random(), boundary.seeds(), set[str]()
    tried, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutate(seeds, draw)
        tried += 1
        try:
            play(boundary, data)
        except Exception as e:
            trace = e.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            place = f"{type(e).__name__} {trace and trace.tb_frame.f_code.co_qualname} {trace and trace.tb_lineno}"
            if place not in places:
                places.add(place)
                path = CORPUS / name / hashlib.sha256(data).hexdigest()[:12]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                print(f"{name}: {place}: {str(e)[:200]}\n  kept: {path}", flush=True)
    print(f"{name}: {tried} inputs, {len(places)} faults", flush=True)
    return len(places)


def main() -> int:
    seconds = float(sys.argv[1]) * 60
    found = sum(fuzz(name, boundary, 0.7 * seconds / len(BOUNDARIES)) for name, boundary in BOUNDARIES.items())
    return int(found + fuzz_plans(CORPUS / "plan", 0.3 * seconds) > 0)


if __name__ == "__main__":
    sys.exit(main())
