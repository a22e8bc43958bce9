"""Experiments: all of them, and one with its progress, its devices, what went wrong, and its jobs."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from dashboards.web import shown
from dashboards.web.contents import KEPT
from dashboards.web.page import Asked, Page, Pager, found_experiment
from orchestrator.answers import problems_of, reason_lines, why_jobs_wait
from orchestrator.ledger import ExperimentRow, Ledger
from orchestrator.report import wording

from .fleet import rows_of

if TYPE_CHECKING:
    from orchestrator.report.content import Content

MOST = 50
MOST_JOBS = 100
MOST_PROBLEMS = 30
_SHOWN: dict[int, tuple[Content, dict[str, Any]]] = {}


def experiments(asked: Asked) -> Page:
    """`?from=` which one comes first; the newest is 0."""
    first = asked.number("from")
    rows, total = asked.ledger().listed.experiments(first, MOST, projects=asked.projects)
    data = {"rows": rows, "pager": Pager(first, total, MOST)}
    return Page("experiments.html.j2", "Experiments", "experiments", data)


def experiment(asked: Asked) -> Page:
    """`?jobs=` a state or an outcome, `?from=` which of them comes first."""
    look, ledger = asked.look(), asked.ledger()
    row = found_experiment(ledger, asked.path["id"])
    problems = problems_of(ledger, row)
    word = asked.query.get("jobs", "")
    word = word if word in shown.ORDER else ""
    jobs = ledger.listed.jobs(row.id, (word,) if word else (), asked.number("from"), MOST_JOBS)
    data = {
        "row": row,
        "results": _results(asked.content(row)) if row.finished else None,
        "ends": None if row.finished else asked.ends(row.id),
        "waits": reason_lines(why_jobs_wait(ledger, look.reasons, row.id)),
        "stopped": ledger.stopped(row.id).get(row.id, ()),
        "problems": problems[:MOST_PROBLEMS],
        "more_problems": max(0, len(problems) - MOST_PROBLEMS),
        "causes": Counter(each.cause or each.outcome for each in problems).most_common(),
        "lanes": _lanes(asked, ledger, row),
        "exclusions": wording.group_exclusions(row.exclusions),
        "jobs": jobs.rows,
        "word": word,
        "words": [each for each in shown.ORDER if row.counts.get(each)],
        "pager": Pager(asked.number("from"), jobs.total, MOST_JOBS, f"jobs={word}&" if word else ""),
        "spec": json.dumps(row.experiment.model_dump(mode="json", exclude_defaults=True), indent=2),
    }
    return Page("experiment.html.j2", row.experiment.name, "experiments", data, live=not row.finished)


def _results(content: Content) -> dict[str, Any]:
    """Show what `farm results` prints, by the functions that it uses; once while the content is kept."""
    known = _SHOWN.get(id(content))
    of, found = known if known is not None else (content, _shown(content))
    _SHOWN[id(content)] = of, found
    for oldest in [*_SHOWN][:-KEPT]:
        _SHOWN.pop(oldest, None)
    return found


def _shown(content: Content) -> dict[str, Any]:
    from orchestrator.report.parts import answer, results
    from orchestrator.report.sections import SETUP, sections

    return {
        "usable": answer.usable(content).partition(":"),
        "closing": answer.closing(content),
        "alerts": results.alerts(content),
        "notes": [*results.notes(content), wording.session_note(content.between_runs)],
        "columns": results.columns(content),
        "groups": results.groups(content),
        "warnings": content.doubts,
        "sustained": _heated(content),
        "sections": [section for section in sections(content) if section.name != SETUP],
    }


def _heated(content: Content) -> list[str]:
    """The devices whose sustained loads are drawn, in the order of their charts."""
    if not any(each.throttling for each in content.summaries):
        return []
    from orchestrator.report.charts import drawn_devices  # matplotlib comes with it

    return drawn_devices(content.summaries)


def _lanes(asked: Asked, ledger: Ledger, row: ExperimentRow) -> list[dict[str, Any]]:
    """The devices that alone may run some of its jobs, with how far each is and what it does for it now."""
    known = {each.serial: each for each in rows_of(asked.look())}
    running = {each.serial for each in asked.look().running.values() if each.experiment_id == row.id}
    counts = ledger.device_counts(row.id)
    return [
        {"serial": serial, "done": done, "total": total, "row": known.get(serial), "is_on_it": serial in running}
        for serial, (done, total) in sorted(counts.items())
    ]
