"""Run the farm under faults, by hand and for as long as wanted: `python -m tests.chaos --seed 7 --jobs 10000`.

Prints what the nemesis did, what became of the attempts, and every promise that was broken. Exit status 0 where none
was. The folder stays where one was, with ledger, logs and the phones' own record of what ran on them.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from .campaign import Campaign, run
from .checker import violations
from .history import History


def summary(history: History, took_s: float) -> str:
    """The history in numbers."""
    ends = Counter((attempt.outcome, attempt.cause) for attempt in history.attempts)
    faults = Counter(hit.fault for hit in history.hits)
    lines = [f"{len(history.jobs)} jobs, {len(history.attempts)} attempts, {len(history.hits)} faults, {took_s:.0f} s"]
    lines += [f"  fault {fault}: {count}" for fault, count in sorted(faults.items())]
    lines += [f"  people {answer}: {count}" for answer, count in sorted(history.answers.items())]
    lines += [f"  attempts {outcome or 'open'} {cause}: {count}" for (outcome, cause), count in ends.most_common()]
    return "\n".join(lines)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.randrange(2**31), help="of the faults; printed")
    parser.add_argument("--phones", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=500, help="at least so many")
    parser.add_argument("--faults", type=int, default=0, help="at least so many; more while jobs are open")
    parser.add_argument("--healthy", action="store_true", help="no faults: whether the farm itself loses a block")
    parser.add_argument("--people", type=int, default=0, help="who read and submit over HTTP meanwhile")
    parser.add_argument("--limit-min", type=float, default=60.0)
    given = parser.parse_args()
    if given.phones < 1 or given.jobs < 1:
        parser.error("give at least one phone and one job")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    print(f"seed {given.seed}, folder {folder}", flush=True)
    began = time.monotonic()
    faults = None if given.healthy else given.faults
    campaign = Campaign(given.seed, given.phones, given.jobs, faults, given.limit_min * 60, given.people)
    history = run(campaign, folder, lambda text: print(f"{time.monotonic() - began:6.0f} s  {text}", file=sys.stderr))
    print(summary(history, time.monotonic() - began))
    (folder / "history.json").write_text(json.dumps(asdict(history), indent=1))
    broken = violations(history)
    for each in broken:
        print(f"broken: {each}")
    if not broken:
        shutil.rmtree(folder)
        print("every promise was kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
