"""`farm login`, `farm logout`: use a farm elsewhere from this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from farm.cli.output import JsonOption, argument, ask_secret, log, option, print_json


def login(
    url: Annotated[str, argument("URL", "Address of the farm, as `farm web --listen` prints it.")],
    from_input: Annotated[
        bool, option("--token-stdin", "Read the token from standard input instead of asking for it.")
    ] = False,
    ca: Annotated[Path | None, option("--ca FILE", "Certificate of the authority that signed the farm's.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Use a farm elsewhere: `run`, `status`, `results` and others then ask it, where no farm of this machine is named.

    Make the token on that farm's pages, where your name leads; or whoever administers it makes one: `farm tokens create
    NAME`. It is kept for you alone.

    Example: `farm login https://farm.lab:8421 --ca farm-ca.crt`
    """
    from dashboards.answers import answers
    from farm.access import settings_of
    from farm.doors.there import There, opened
    from farm.endpoints import Login, log_in

    asks = f"Token (make one at {url.rstrip('/')}/me)"
    token = sys.stdin.readline() if from_input else ask_secret(asks, "give --token-stdin")
    made = Login(url=url, token=SecretStr(token.strip()), ca=ca.absolute() if ca else None)
    with opened(made) as line:
        me = There(line).ask(answers.me)
        made = made.model_copy(update={"url": line.url})
    path = log_in(settings_of(Path()), made)
    if as_json:
        print_json({"url": made.url, "file": path, **me.model_dump(mode="json")})
        return
    roles = [f"{role} in {place}" for place, role in me.projects.items()]
    roles = [f"{me.farm} in the farm", *roles] if me.farm else roles
    log().print(f"logged in to {made.url} as {me.name}: {', '.join(roles) or 'no role yet'}", markup=False)


def logout(as_json: JsonOption = False) -> None:
    """Forget the farm elsewhere and its token on this machine. Exit status 1 if nobody is logged in.

    The token goes on: `farm tokens revoke` ends it.

    Example: `farm logout`
    """
    from farm.access import settings_of
    from farm.endpoints import login_file

    path = login_file(settings_of(Path()))
    known = path.exists()
    path.unlink(missing_ok=True)
    if as_json:
        print_json({"file": path, "was_logged_in": known})
    log().print("logged out" if known else "nobody is logged in")
    if not known:
        raise typer.Exit(1)
