"""Files that are made of results: raw figures one a row, and the report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Annotated, Literal

from fastapi import Depends, FastAPI
from starlette.responses import HTMLResponse, StreamingResponse

from dashboards.answers.answers import SEES, content, labels_of
from dashboards.answers.asked import Asked
from dashboards.answers.reading import Name

from .reading import here

Here = Annotated[Asked, Depends(here)]
CHUNK_BYTES, IN_MEMORY_BYTES = 1 << 20, 8 << 20
MEDIA = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv", "json": "application/x-ndjson"}


def add_tables(app: FastAPI) -> None:
    """Give both their routes."""
    right = f"Takes the role `{SEES.least}` ({SEES.of})."
    app.get(
        "/experiments/{id}/table", operation_id="table", tags=["answers"], response_class=StreamingResponse,
        summary="Stream the raw figures of an experiment, one a row, as `farm export` writes them.",
        description=f"{right} `X-What` says what a row is, `X-Rows` how many there are.",
        responses={200: {"content": {each: {} for each in MEDIA.values()}}}, openapi_extra={"x-right": vars(SEES)},
    )(table)  # fmt: skip
    app.get(
        "/experiments/{id}/report", operation_id="report", tags=["answers"], response_class=HTMLResponse,
        summary="Send the report of an experiment: one page that needs nothing from elsewhere.",
        description=right, openapi_extra={"x-right": vars(SEES)},
    )(report)  # fmt: skip


def table(
    id: Name,
    asked: Here,
    form: Literal["parquet", "csv", "json"] = "parquet",
    what: Literal["", "samples", "layers", "power", "predictions", "tokens"] = "",
) -> StreamingResponse:
    """Raises NotAllowed, UnknownName, ModelFileError where labels cannot be read."""
    from orchestrator.exchange import export

    asked.let(SEES, [asked.ledger.place_of(id)], id)
    row = asked.ledger.experiment(id)
    made = what or export.measured(asked.ledger, row.id)
    labels = labels_of(asked, row) if made == "predictions" else None
    pieces = _pieces(lambda file: export.export(asked.ledger, row.id, form, made, file, labels=labels))
    headers = {"X-What": made, "X-Rows": str(next(pieces)), "Cache-Control": "no-store"}
    return StreamingResponse(pieces, headers=headers, media_type=MEDIA[form])  # type: ignore[arg-type]


def report(id: Name, asked: Here) -> HTMLResponse:
    """Raises NotAllowed, UnknownName."""
    from orchestrator.report.gathering import report_page

    asked.let(SEES, [asked.ledger.place_of(id)], id)
    found = content(asked, id=id, layers=True)
    return HTMLResponse(report_page(found, asked.ledger), headers={"X-Results": str(len(found.summaries))})


def _pieces(write: Callable[[IO[bytes]], int]) -> Iterator[int | bytes]:
    """Yield how many rows there are, then the file, which ends with its reader."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
        yield write(file)
        file.seek(0)
        while piece := file.read(CHUNK_BYTES):
            yield piece
