"""A job's story: attempts in order, causes, what was kept as evidence."""

from __future__ import annotations

from dashboards.web.page import Asked, Page
from orchestrator.answers import story_of


def job(asked: Asked) -> Page:
    look = asked.look()
    story = story_of(asked.ledger(), asked.path["id"], look.reasons)
    serial = next((serial for serial, row in look.running.items() if row.job_id == story.job_id), "")
    lane = look.lane(serial) if serial else None
    data = {"story": story, "progress": lane.progress if lane else None}
    return Page("job.html.j2", story.label, "experiments", data, live=story.is_open)
