"""Log in by a provider of OpenID Connect: the way there, and back to the same session as by a password."""

from __future__ import annotations

import logging

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dashboards.web.forms import is_way, origin
from orchestrator.acts import Actor, Door
from orchestrator.acts.access.sign_on import sign_on
from orchestrator.model.errors import FarmError, NotAllowed, ServiceDown
from orchestrator.model.rights import WHOLE
from orchestrator.system.config import SignOn

from .log_in import LogIn

log = logging.getLogger(__name__)
THERE, BACK = "/sign-in/provider", "/sign-in/provider/back"
LONGEST_WAY = 500
"""Characters of the page to which somebody goes on: a cookie keeps it."""
COOKIE, KEPT_S = "farm_provider", 600.0
"""A cookie of this browser binds the way back to the way there: nobody is logged in by another's link."""


class ByProvider:
    """The way to a provider and back. It is read about, and asked, when somebody comes."""

    def __init__(self, log_in: LogIn, of: SignOn) -> None:
        from .provider import Provider  # Authlib is loaded where there is a provider

        self._log_in, self._provider = log_in, Provider(of)

    async def there(self, request: Request) -> Response:
        return await run_in_threadpool(self._there, request)

    async def back(self, request: Request) -> Response:
        return await run_in_threadpool(self._back, request)

    def _there(self, request: Request) -> Response:
        back = request.query_params.get("back", "/")
        back = back if is_way(back) and len(back) <= LONGEST_WAY else "/"
        try:
            url, kept = self._provider.begin(_redirect(request))
        except FarmError as e:
            return self._failed(request, back, e)
        access, response = self._log_in.access, RedirectResponse(url, 303)
        value = access.sealed("provider", KEPT_S, back=back, **kept)
        access.give(request, response, COOKIE, value, KEPT_S, path=THERE, strict=False)
        return response

    def _back(self, request: Request) -> Response:
        access, address = self._log_in.access, origin(request)
        kept = access.opened("provider", request.cookies.get(COOKIE, "")) or {}
        back = kept.get("back", "/")
        if wait_s := self._log_in.attempts.begin(address, address):
            return self._log_in.asked_too_often(request, back, wait_s)
        try:
            if not kept:
                raise NotAllowed("this log-in was not begun in this browser, or more than ten minutes ago")
            claimed = self._provider.claimed(kept, request.query_params, _redirect(request))
            sign_on(self._log_in.site(), Actor(claimed.name, Door.PAGE, WHOLE, address), claimed)
            cookie = access.begin(claimed.name)
        except FarmError as e:
            return self._failed(request, back, e)
        self._log_in.attempts.went_well(address, address)
        response = self._log_in.shows_way(request, back)
        access.let_in(request, response, cookie)
        response.delete_cookie(COOKIE, path=THERE)
        return response

    def _failed(self, request: Request, back: str, error: FarmError) -> Response:
        log.warning("event=sign_in_refused origin=%s by=provider", origin(request))
        told = ". ".join(f"{text[0].upper()}{text[1:]}" for text in (str(error.args[0]), error.remedy) if text)
        response = self._log_in.asks(request, back, f"{told}.", 503 if isinstance(error, ServiceDown) else 403)
        response.delete_cookie(COOKIE, path=THERE)
        return response


def _redirect(request: Request) -> str:
    """Return the address of the way back, as this browser calls us, which is checked to be ours."""
    return str(request.url.replace(path=BACK, query=""))
