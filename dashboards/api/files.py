"""Files of experiments: sent by hash, in as many pieces as the line takes, counted and hashed while they come."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Header
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from dashboards.answers.asked import Asked
from dashboards.answers.reading import Word
from orchestrator.acts.access.projects import check_project
from orchestrator.acts.access.storage import Storage
from orchestrator.acts.submission.uploads import Held, Uploads
from orchestrator.model.people import COMMON, Role
from orchestrator.model.rights import Place, Right

from .door import FILES
from .reading import here

SENDS = Right(Role.SUBMIT)
Sha256 = Annotated[str, InPath(pattern=r"^[0-9a-f]{64}$", description="The SHA-256 of the whole file.")]
Bytes = Annotated[int, Header(ge=0, lt=1 << 50)]
Length = Annotated[int | None, Header(ge=0, lt=1 << 50, description="That of the whole file, where a part comes.")]
Here = Annotated[Asked, Depends(here)]


def add_files(app: FastAPI) -> None:
    """Give files their routes."""
    told = {"description": f"Takes the role `{SENDS.least}` ({SENDS.of}).", "openapi_extra": {"x-right": vars(SENDS)}}
    head = "Tell in `Upload-Offset` how many bytes of a file are there, in `Upload-Complete` (`?1`) whether all are."
    put = "Send a file, of `Upload-Length` bytes, from `Upload-Offset` on: what has come stays if the line breaks."
    path = FILES + "{sha256}"
    app.head(path, operation_id="file_held", tags=["files"], summary=head, status_code=204, **told)(held)  # type: ignore[arg-type]
    app.put(path, operation_id="send_file", tags=["files"], summary=put, status_code=204, **told)(send)  # type: ignore[arg-type]


def held(sha256: Sha256, asked: Here, project: Word = COMMON) -> Response:
    """Raises NotAllowed, UnknownName."""
    return _told(_of(asked, project).held(sha256))


async def send(
    request: Request,
    sha256: Sha256,
    asked: Here,
    upload_length: Length = None,
    upload_offset: Bytes = 0,
    project: Word = COMMON,
) -> Response:
    """Raises NotAllowed, UnknownName, KeyTaken, ModelFileError."""
    uploads = await run_in_threadpool(_of, asked, project)
    if (known := await run_in_threadpool(uploads.held, sha256)).whole:
        return _told(known)
    comes = int(request.headers.get("content-length", "0"))  # of HTTP itself, which has judged it
    length = upload_offset + comes if upload_length is None else upload_length
    opened = uploads.coming(sha256, upload_offset, length)
    coming = await run_in_threadpool(opened.__enter__)
    try:
        async for piece in request.stream():
            await run_in_threadpool(coming.write, piece)
        found = await run_in_threadpool(coming.end)
    except ClientDisconnect:
        found = Held(coming.bytes, False)
    finally:
        await run_in_threadpool(opened.__exit__, None, None, None)
    if found.whole:
        await run_in_threadpool(_noted, asked, sha256, f"{found.bytes} bytes for {project}")
    return _told(found)


def _of(asked: Asked, project: str) -> Uploads:
    asked.let(SENDS, [Place(project, asked.actor.who)], project)
    check_project(asked.ledger, project)
    return Uploads(Storage.of(asked.ledger, asked.site().settings, project))


def _noted(asked: Asked, sha256: str, said: str) -> None:
    asked.ledger.audit.note(asked.actor, "send file", sha256, said)


def _told(found: Held) -> Response:
    headers = {"Upload-Offset": str(found.bytes), "Upload-Complete": f"?{found.whole:d}", "Cache-Control": "no-store"}
    return Response(status_code=204, headers=headers)
