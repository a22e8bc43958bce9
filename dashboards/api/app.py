"""The application under `/api/v1`: its routes are made of acts and answers, and no other is."""

from __future__ import annotations

import re
from importlib.metadata import version

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from dashboards.answers.asked import Sources
from orchestrator.model.errors import FarmError

from . import problems
from .acting import add_acts
from .door import Guarded, Known
from .etags import Tagged
from .files import add_files
from .progress import add_progress
from .reading import add_reads
from .tables import add_tables

API = "/api/v1"
__all__ = ["API", "Sources", "make_api", "mounted"]


def mounted(sources: Sources) -> Mount:
    """Return the route of all that begins with `API`, also of paths with a line's end, which `.` does not match."""
    route = Mount(API, make_api(sources))
    route.path_regex = re.compile(route.path_regex.pattern, re.DOTALL)
    return route


def make_api(sources: Sources) -> FastAPI:
    """Make the farm's routes for programs."""
    shown = Security(HTTPBearer(auto_error=False, description="The farm's token, or one of `farm tokens create`."))
    app = FastAPI(
        title="pocketfarm",
        version=version("pocketfarm"),
        description="Acts and answers of a device farm. Lists are paged; errors are problem details (RFC 9457).",
        docs_url=None,
        redoc_url=None,
        servers=[{"url": API}],
        root_path_in_servers=False,
        responses=problems.RESPONSES,
        dependencies=[shown],
        separate_input_output_schemas=False,
        redirect_slashes=False,
    )
    app.state.sources = sources
    app.add_exception_handler(FarmError, problems.of_farm)
    app.add_exception_handler(RequestValidationError, problems.of_request)
    app.add_exception_handler(HTTPException, problems.of_http)
    app.add_exception_handler(Exception, problems.of_fault)
    add_acts(app)
    add_reads(app)
    add_progress(app)
    add_files(app)
    add_tables(app)
    app.get("/health", operation_id="health", tags=["open"], summary="Tell that the service answers.")(_health)
    app.add_middleware(Tagged)
    app.add_middleware(Guarded, known=Known(sources.token, sources.ledger))
    _describe(app)
    return app


def _health() -> dict[str, str]:
    return {"status": "ok"}


def _describe(app: FastAPI) -> None:
    """Complete the description: the form of a problem, and what is open to all."""
    made = app.openapi

    def openapi() -> dict[str, object]:
        schema = made()
        schema["components"]["schemas"]["Problem"] = problems.Problem.model_json_schema()
        schema["paths"]["/health"]["get"]["security"] = []
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
