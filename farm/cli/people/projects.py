"""`farm projects`: what owns experiments, and in which people have roles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.markup import escape

from farm.cli.output import HERE, Common, argument, do, group_of, option, show_every

if TYPE_CHECKING:
    from dashboards.answers.answers import ProjectNow

ShareOption = Annotated[float | None, option("--share NUMBER", "Its share of the farm beside other projects'; 1.")]
HoursOption = Annotated[
    float | None, option("--phone-hours NUMBER", "The phone-hours that it may use in a week; 0: no limit.")
]
WaitingOption = Annotated[int | None, option("--waiting NUMBER", "The jobs of it that may wait; 0: no limit.")]
StorageOption = Annotated[
    float | None, option("--storage-gib NUMBER", "What its files and records may take; 0: no limit.")
]


def add(
    name: Annotated[str, argument("NAME", "Its name.")],
    note: Annotated[str, option("--note TEXT", "What it is for.")] = "",
    share: ShareOption = None,
    phone_hours: HoursOption = None,
    waiting: WaitingOption = None,
    storage: StorageOption = None,
    common: Common = HERE,
) -> None:
    """Add a project. `farm run --project NAME` submits to it.

    Example: `farm projects add vision --note "models of cameras"`
    """
    do("add project", name, note, share, phone_hours, waiting, storage, common=common)


def set_(
    name: Annotated[str, argument("NAME", "The project; `common` is one, too.")],
    note: Annotated[str | None, option("--note TEXT", "What it is for.")] = None,
    share: ShareOption = None,
    phone_hours: HoursOption = None,
    waiting: WaitingOption = None,
    storage: StorageOption = None,
    common: Common = HERE,
) -> None:
    """Change the share or the limits of a project. What is not given stays as it was.

    Example: `farm projects set vision --share 2 --phone-hours 40`
    """
    do("set project", name, note, share, phone_hours, waiting, storage, common=common)


def list_(common: Common = HERE) -> None:
    """List the projects with their members, their shares and what they use of their limits: phone-hours of this week,
    jobs that wait, GiB of files and records. `common` has the experiments that name no other.

    Example: `farm projects list --json`
    """
    columns = ("project", "members", "share", "hours", "jobs that wait", "GiB kept", "note")
    show_every("/projects", columns, _row, common=common)


def _row(each: ProjectNow) -> tuple[str, ...]:
    members = ", ".join(f"{who} ({role})" for who, role in each.members.items())
    return (escape(each.name), escape(members), f"{each.terms.share:g}", *each.uses.values(), escape(each.note))


group = group_of(
    "projects",
    (list_, add, set_),
    "Add and list projects, which own experiments and in which people have roles."
    "\n\nExample: `farm projects list` (`--state DIR`, `--json`)",
)
