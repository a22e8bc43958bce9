"""A run that has ended goes into the ledger."""

from __future__ import annotations

import json
from collections.abc import Sequence

from orchestrator.ledger import Ledger, QueueRunBody
from orchestrator.model.telemetry import Reading
from orchestrator.queueing.live import LiveRun
from orchestrator.queueing.measures import measure
from orchestrator.queueing.spec import QueueingSpec

from .columns import pack_readings, pack_requests
from .run import KeptCourse, KeptRun, KeptServer, overhead_of


def keep_run(
    ledger: Ledger,
    spec: QueueingSpec,
    runs: Sequence[LiveRun],
    servers: Sequence[KeptServer],
    readings: Sequence[Sequence[Reading]],
) -> str:
    """Its id. `servers` and their `readings` are in the spec's order. Raises ServiceDown."""
    measured = measure(spec, [each.run for each in runs])
    total = measured.total
    measured_s = sum(each.run.duration_s - measured.cut_s for each in runs)
    summary = {
        "policy": spec.policy.name or spec.policy.file,
        "offered_per_s": total.requests / measured_s if measured_s > 0 else None,
        "throughput_per_s": total.throughput_per_s.value,
        "sojourn_s": {part: getattr(total.sojourn_s, part).value for part in ("mean", "p50", "p99")},
        "utilisation": total.utilisation.value,
        "drop_share": total.drop_share.value,
        "lost_share": total.lost_share.value,
        "energy_j_per_request": total.energy_j_per_request.value,
        "doubts": list(measured.doubts),
    }
    kept = KeptRun(spec=spec, servers=tuple(servers), runs=tuple(_course(each) for each in runs))
    return ledger.queue_runs.keep(
        spec.name,
        runs[0].began_at,
        ", ".join(sorted({str(each.device.source) for each in servers})),
        sum(len(each.run.requests) for each in runs),
        json.dumps(summary).encode(),
        QueueRunBody(
            kept.model_dump_json().encode(),
            pack_requests([each.run.requests.rows for each in runs]),
            pack_readings(readings),
        ),
    )


def _course(live: LiveRun) -> KeptCourse:
    run = live.run
    course = run.course
    return KeptCourse(
        began_at=live.began_at,
        duration_s=run.duration_s,
        waited_s=run.waited_s,
        at=tuple(round(each, 4) for each in course.at),
        waiting=tuple(course.waiting),
        waiting_s=tuple(round(each, 6) for each in course.waited_s),
        busy_s=tuple(tuple(round(each, 5) for each in point) for point in course.busy_s),
        temp_c=tuple(tuple(course_point) for course_point in course.temp_c),
        energy_j=tuple(round(each, 5) for each in course.energy_j),
        overhead_s=overhead_of(run),
        doubts=run.doubts,
    )
