"""`farm web`: where the farm's pages are; serve them where nobody does."""

from __future__ import annotations

from typing import Annotated

from farm.access import of_a_host, settings_of
from farm.cli.output import HERE, Common, option, out, print_json, say

from .certificate import CertificateOption, KeyOption, with_certificate


def web(
    port: Annotated[
        int | None,
        option("--port", "Serve the pages on this port.", min=1, max=65535, show_default="FARM_PAGES_PORT or 8420"),
    ] = None,
    listen: Annotated[
        str,
        option(
            "--listen ADDRESS",
            "Also serve other machines, over HTTPS with a sign-in, at this name or IP of this machine.",
        ),
    ] = "",
    certificate: CertificateOption = None,
    key: KeyOption = None,
    common: Common = HERE,
) -> None:
    """Print the address of the farm's pages and how to sign in. If no farm serves them, serve them until Ctrl-C.

    Everybody on this machine can read the pages. Actions need the farm's token, which the printed link carries. Without
    a running farm, the pages show the content of the ledger.

    Example: `farm web`, `farm web --listen farm.lab --port 8421`
    """
    from dashboards.web.access import token_of
    from farm import endpoints
    from farm.parts.part import is_free
    from farm.reach.address import authority_of, bind_of, given_certificate
    from farm.web.pages import Listening, serve
    from orchestrator.model.errors import SetupError

    settings = with_certificate(settings_of(common.state), certificate, key)
    found = endpoints.read(settings.state)
    if not settings.ledger_url and (host := of_a_host(settings)):
        raise host
    if found is not None and found.pages_port and port is None and not listen:
        _say(found.pages_url, token_of(settings.state), as_json=common.as_json)
        return
    chosen = port or settings.pages_port
    if chosen == 0 or not is_free(chosen):
        raise SetupError(
            f"port {chosen} cannot be used for the pages", remedy="give a free one: `farm web --port 8421`"
        )
    listening = Listening(port=chosen)
    if listen:
        bind = bind_of(listen)
        given = given_certificate(settings, listen)
        own = given or authority_of(settings.state).issue("pages", {listen, bind})
        listening = Listening(bind, chosen, listen, own)
    _say(listening.url, token_of(settings.state), as_json=common.as_json)
    if listen:
        ca = authority_of(settings.state).certificate
        more = "" if given else f" --ca {ca.name}  ({ca})"
        say(f"from elsewhere, with a token of `farm tokens create`: farm login {listening.url}{more}")
    serve(settings.state, listening)


def _say(url: str, token: str, *, as_json: bool) -> None:
    sign_in = f"{url}sign-in#{token}"
    if as_json:
        print_json({"url": url, "sign_in": sign_in})
        return
    out().print(url, markup=False, highlight=False)
    say(f"to act, sign in: {sign_in}")
