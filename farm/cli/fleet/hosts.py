"""`farm host`: the machines of the farm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from farm.access import COMMAND_LINE, open_site, settings_of, user_by
from farm.cli.output import HERE, Common, argument, do, group_of, log, option, print_json, say, show_every

if TYPE_CHECKING:
    from orchestrator.answers.hosts import HostView

STYLES = {"ready": "green", "unfit": "red", "silent": "red"}
NameArgument = Annotated[str, argument("NAME", "Its name, as `farm host list` says it.")]


def list_(common: Common = HERE) -> None:
    """List the hosts: whether each gets work, if not why, its version, and its open sessions.

    Example: `farm host list --json`
    """
    from orchestrator.report.listing import Head

    heads = ("host", "state", Head("sessions", True), Head("spooled", True), "version", "why it gets no work")
    show_every("/hosts", heads, _row, common=common, none="no host is known")


def _row(each: HostView) -> tuple[str, ...]:
    state = f"[{STYLES.get(each.state, 'yellow')}]{each.state}[/]"
    running = f"{each.running} of {each.sessions}" if each.sessions else str(each.running)
    of = (escape(each.name), state, running, str(each.spooled))
    return (*of, f"{each.version or '?'} ({each.protocol})", escape(each.why))


def add(
    name: NameArgument,
    out_file: Annotated[Path | None, option("--out FILE", "Where to write it.", show_default="NAME.join")] = None,
    common: Common = HERE,
) -> None:
    """Let another machine join this farm, which must run with `farm up --listen`: write the file for `farm up --join`.

    The file holds a secret. Adding a host again makes a new secret, and the old one no longer works.

    Example: `farm host add lab2`
    """
    from farm import hosts

    path = out_file or Path(f"{name}.join")
    with open_site(settings_of(common.state)) as site:
        hosts.add(site, user_by(COMMAND_LINE), name, path)
    if common.as_json:
        print_json({"host": name, "file": path})
    else:
        log().print(
            f"bring {path} to {name} (it holds a secret), and run there: farm up --join {path.name}", markup=False
        )


def drain(name: NameArgument, common: Common = HERE) -> None:
    """Give a host no new work; it finishes its sessions. `farm host list` says how many are left.

    Example: `farm host drain lab2`
    """
    do("drain host", name, common=common)


def resume(name: NameArgument, common: Common = HERE) -> None:
    """Give a drained or removed host work again.

    Example: `farm host resume lab2`
    """
    do("resume host", name, common=common)


def remove(
    name: NameArgument,
    force: Annotated[
        bool, option("--force", "Remove it even while it runs sessions; their jobs are tried again on other hosts.")
    ] = False,
    common: Common = HERE,
) -> None:
    """Take a host out of the farm. Without --force this is refused while the host runs a session.

    Example: `farm host remove lab2`
    """
    do("remove host", name, force=force, common=common)


def certificate(
    address: Annotated[list[str], argument("ADDRESS", "Names and IP addresses of the server.")],
    out_dir: Annotated[Path, option("--out DIR", "Where to write key and certificates.")] = Path(),
    common: Common = HERE,
) -> None:
    """Make a certificate for another server of this farm (such as PostgreSQL), signed by the farm's own authority.

    Writes server.key, server.crt and ca.crt; an existing certificate is renewed 30 days before it expires.

    Example: `farm host certificate db.lab --out postgres-tls`
    """
    from farm.reach import authority_of

    authority = authority_of(settings_of(common.state).state)
    made = authority.issue("server", address, folder=out_dir)
    ca = out_dir / "ca.crt"
    ca.write_bytes(authority.certificate.read_bytes())
    if common.as_json:
        print_json({"certificate": made.certificate, "key": made.key, "ca": ca})
    else:
        say(f"wrote {made.certificate}, {made.key} and {ca}")


group = group_of(
    "host",
    (list_, add, drain, resume, remove, certificate),
    "List the machines of the farm; drain, remove or take back one. The ledger stores the state of a host."
    "\n\nExample: `farm host list`, `farm host drain lab2` (`--state DIR`, `--json`)",
)
