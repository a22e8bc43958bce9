"""A night tells each canary that told nothing, and is complete all the same."""

from __future__ import annotations

import random
from collections import Counter

from orchestrator.ledger import JobRow, JobState
from orchestrator.nightly.judge import Findings, judged
from orchestrator.nightly.summary import summary
from tests.unit.nightly.test_steps import night
from tests.unit.orchestrator import make


def test_canaries_that_fail_are_told_by_device_and_cause(seed: int) -> None:
    chosen = random.Random(seed)
    drawn = [
        (chosen.choice("ABC"), chosen.choice(["ok", "failed", "lost"]), chosen.choice(["canary", "work"]))
        for _ in range(30)
    ]
    rows = []
    for number, (serial, outcome, role) in enumerate(drawn):
        job = make.job(candidates=(serial,), block=number).model_copy(update={"role": role})
        cause = "" if outcome == "ok" else "deadline"
        rows.append(JobRow(job.job_id, job, JobState.DONE, outcome, cause, 1, 1.0))
    found = judged(night(), Findings(0.0, [], rows, {}))
    failed = Counter((s, outcome) for s, outcome, role in drawn if role == "canary" and outcome != "ok")
    assert len(found.warnings) == len(failed)
    for (serial, outcome), count in failed.items():
        total = sum(s == serial and role == "canary" for s, _, role in drawn)
        start = f"{count} of {total} canaries on {serial} did not end well ({outcome}: deadline)"
        assert any(each.startswith(start) for each in found.warnings)
        assert start in summary(found)
