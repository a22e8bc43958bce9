"""`farm up`, `farm down`, `farm doctor`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from farm.access import existing_settings, none_runs, settings_of
from farm.cli.output import HERE, Common, log, option, out, print_json, say, show_error
from orchestrator.model.errors import FarmError, SetupError

from .certificate import CertificateOption, KeyOption, with_certificate

STYLES = {
    "ready": "green",
    "died": "bold red",
    "stopped": "dim",
    "stopping": "dim",
    "left over": "yellow",
    "waiting": "yellow",
}
DOWN_LIMIT_S = 60.0

if TYPE_CHECKING:
    from rich.console import RenderableType

    from farm import endpoints
    from farm.doctor import Finding
    from orchestrator.system.config import Settings


def up(
    virtual: Annotated[int, option("--virtual, -n N", "Number of virtual phones to start.", min=0, max=400)] = 0,
    profile: Annotated[
        list[str] | None, option("--profile NAME", "Profile of a virtual phone, or `replay:FILE`; repeatable.")
    ] = None,
    usb: Annotated[bool, option("--usb", "With --virtual: use the phones of this machine's adb server, too.")] = False,
    listen: Annotated[
        str,
        option(
            "--listen ADDRESS", "Let other machines join as hosts; they reach this machine at this name or IP address."
        ),
    ] = "",
    join: Annotated[
        str,
        option("--join FILE|URL", "Join the farm of another machine as a host; the file comes from `farm host add`."),
    ] = "",
    admin: Annotated[
        str, option("--admin NAME", "With --listen: let its first administrator in, by a link that counts once.")
    ] = "",
    certificate: CertificateOption = None,
    key: KeyOption = None,
    common: Common = HERE,
) -> None:
    """Run the farm in the foreground: Redis, adb server, scheduler, host worker, nights, exporter, pages.

    Without --virtual it uses the phones of this machine's adb server. Ctrl-C ends everything that it started; the next
    `farm up` resumes the jobs that were running.

    With --join it runs only an adb server and a worker, for the farm that wrote the file. With --listen people of other
    machines reach the pages and the API, by HTTPS under the farm's own authority, or with a certificate of yours.

    Example: `farm up --virtual 4`, `farm up --listen farm.lab --admin anna`
    """
    from farm.up import run_farm

    if listen and join:
        raise typer.BadParameter("a host of another farm lets no hosts in", param_hint="--listen")
    if admin and not listen:
        raise typer.BadParameter("give --listen, too: else nobody reaches the pages", param_hint="--admin")
    if (certificate or key) and not listen:
        raise typer.BadParameter("give --listen, too: it is for the pages there", param_hint="--certificate")
    run_farm(
        with_certificate(settings_of(common.state), certificate, key),
        virtual,
        profile or [],
        usb=usb,
        listen=listen,
        join=join,
        say=_say,
        ready=lambda found: _ready(found, common.as_json, admin, common.state),
    )


def _say(part: str, what: str, detail: str) -> None:
    log().print(f"[bold]{part:<10}[/bold] [{STYLES.get(what, 'default')}]{what:<8}[/] {detail}", soft_wrap=True)


def _ready(found: endpoints.Endpoints, as_json: bool, admin: str, state: Path | None) -> None:
    if as_json:
        print_json({"ready": True, "endpoints": public(found)})
    if found.joined:
        from orchestrator.coordination.client import shown_url

        log().print(
            f"[bold green]Host {found.host} is up[/] (pid {found.pid}) for {shown_url(found.joined)}. Ctrl-C ends it."
        )
        return
    log().print(f"[bold green]The farm is up[/] (pid {found.pid}): {found.pages_url}. Ctrl-C ends it.")
    log().print(f"for programs: {found.api_url}/openapi.json", highlight=False, soft_wrap=True)
    if found.people_url:
        ca = found.people_ca
        more = f" --ca {ca.name}  ({ca})" if ca else ""
        from_elsewhere = f"from elsewhere: {found.people_url}, farm login {found.people_url}{more}"
        log().print(from_elsewhere, markup=False, highlight=False, soft_wrap=True)
    if admin:
        _let_in(admin, state)


def _let_in(name: str, state: Path | None) -> None:
    """Make somebody who is not let in yet the administrator of the farm, and print the link that sets the password."""
    from farm.cli.people.people import invite
    from farm.doors import open_door
    from orchestrator import acts
    from orchestrator.model.people import Role

    try:
        with open_door(settings_of(state).state) as door:
            if not door.act(acts.people.add_person, name).did:
                say(f"{name} is let in already; a new link: farm people password {name}")
                return
            door.act(acts.people.grant_role, name, Role.ADMINISTER, "")
            done, link = invite(door, name, settings_of(state))
    except FarmError as e:
        show_error(str(e.args[0]), e.remedy)
        return
    for text in (*done.lines, link):
        say(text)


def public(found: endpoints.Endpoints) -> dict[str, Any]:
    """Endpoints without the secret."""
    urls = {"exporter_url": found.exporter_url, "pages_url": found.pages_url, "api_url": found.api_url}
    return {**found.model_dump(mode="json", exclude={"redis_password"}), **urls}


def down(common: Common = HERE) -> None:
    """End the farm that uses a state folder, and wait until it has ended. Exit status 1 if no farm runs there.

    Example: `farm down --state .farm`
    """
    from farm import endpoints

    settings = existing_settings(common.state)
    pid = endpoints.holder(settings.state)
    if not pid:
        raise none_runs(settings)
    os.kill(pid, signal.SIGTERM)
    _wait_until_down(settings, pid)
    if common.as_json:
        print_json({"state": settings.state.absolute(), "ended": pid})
    log().print(f"farm on {settings.state} ended (pid {pid})")


def _wait_until_down(settings: Settings, pid: int) -> None:
    from farm import endpoints

    limit = time.monotonic() + DOWN_LIMIT_S
    while endpoints.holder(settings.state) == pid:
        if time.monotonic() > limit:
            raise SetupError(f"the farm (pid {pid}) has not ended after {DOWN_LIMIT_S:.0f} s", remedy=f"kill -9 {pid}")
        time.sleep(0.1)


def doctor(common: Common = HERE) -> None:
    """Check what this machine has, and print the command that fixes each problem.

    Exit status 1 if something that the farm needs is missing. A missing optional part is only a warning.

    Example: `farm doctor --json`
    """
    from farm.doctor import Verdict, examine

    findings = examine(settings_of(common.state))
    well = all(finding.verdict is not Verdict.MISSING for finding in findings)
    if common.as_json:
        print_json({"ok": well, "checks": [finding.as_dict() for finding in findings]})
    else:
        out().print(table_of(findings))
    if not well:
        raise typer.Exit(1)


def table_of(findings: Iterable[Finding]) -> RenderableType:
    """A line for each check."""
    from orchestrator.report.listing import Listing

    rows = [(found.name, found.verdict.mark, escape(found.found), escape(found.remedy)) for found in findings]
    return Listing(("check", "", "found", "mend it with"), rows)
