"""`farm devices reserve`, `lend`, `reservations`, `unreserve`: devices for people, groups and projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from farm.cli import completion
from farm.cli.output import HERE, Common, argument, day, do, option, show_done, show_every
from farm.doors import open_door
from orchestrator.model.quantity import parse_moment

if TYPE_CHECKING:
    from orchestrator.ledger import Hold


def reserve(
    serials: Annotated[list[str], argument("SERIAL...", "Devices to reserve.", autocompletion=completion.serials)],
    begins: Annotated[
        str | None, option("--from TIME", "When it begins: `14:00`, `2026-12-01 08:00`; now by default.")
    ] = None,
    until: Annotated[
        str | None, option("--until TIME", "When it ends; without an end the devices are a project's pool.")
    ] = None,
    name: Annotated[str, option("--for NAME", "The person, group or project that has them; you, by default.")] = "",
    why: Annotated[str, option("--why TEXT", "Reason, shown to other people.")] = "",
    common: Common = HERE,
) -> None:
    """Reserve devices for a person, a group or a project. From its begin to its end no other experiments run there.

    A block that would last into a reservation is not begun, if it is known how long such blocks take. Else it is
    finished first, so a reservation begins one block late at most. Without --until the devices are the project's pool.

    Example: `farm devices reserve R58M123ABC --from 14:00 --until 16:00 --for vision --why demo`
    """
    given = [_moment(text, option) for text, option in ((begins, "--from"), (until, "--until"))]
    do("reserve", serials, given[0], given[1], name, why, common=common)


def lend(
    serials: Annotated[list[str], argument("SERIAL...", "Devices to lend.", autocompletion=completion.serials)],
    to: Annotated[str, option("--to PERSON", "Who gets them.")],
    until: Annotated[str, option("--until TIME", "When they come back: `2026-12-01 08:00`.")],
    why: Annotated[str, option("--why TEXT", "Reason, shown to other people.")] = "",
    common: Common = HERE,
) -> None:
    """Reserve devices from now on for a person, who may take them away. Blocks that run there are finished first.

    They come back by themselves at the end, or earlier with `farm devices unreserve NUMBER`.

    Example: `farm devices lend R58M123ABC --to anna --until 18:00 --why "camera tests"`
    """
    from orchestrator import acts

    with open_door(common.state) as door:
        end = _moment(until, "--until")
        done = door.act(acts.reserving.reserve, serials, None, end, f"{acts.reserving.PERSON}{to}", why)
    show_done(done, as_json=common.as_json)


def unreserve(
    number: Annotated[int, argument("NUMBER", "Its number in `farm devices reservations`.")], common: Common = HERE
) -> None:
    """End a reservation, whether it has begun or not, or take a device out of a pool. One's own take the role submit.

    Example: `farm devices unreserve 3`
    """
    do("unreserve", number, common=common)


def reservations(common: Common = HERE) -> None:
    """List who has which devices, now and later. Needs no running farm.

    Example: `farm devices reservations --json`
    """
    heads = ("number", "device", "whose", "from", "until", "why")
    show_every("/reservations", heads, _row, common=common)


def _row(each: Hold) -> tuple[str, ...]:
    of = (str(each.id), escape(each.serial), escape(each.whose))
    return (*of, day(each.begins or each.since), day(each.until), escape(each.note))


def _moment(text: str | None, option: str) -> float | None:
    """Unix time. Raises UsageError."""
    try:
        return None if text is None else parse_moment(text)
    except ValueError as e:
        raise typer.BadParameter(str(e), param_hint=option) from e
