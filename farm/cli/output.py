"""Groups, options and output of commands: the result on standard output, progress and errors on standard error."""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from farm.doors import open_door
from kernels.errors import CompileError
from orchestrator.model.errors import FarmError, SetupError

from .terminal import Terminal

if TYPE_CHECKING:
    from rich.progress import Progress

    from orchestrator.acts import Done
    from orchestrator.report.listing import Cell, Head


def option(usage: str, help: str, **more: Any) -> Any:
    """Return an option for `Annotated`, as a usage line has it: `option("-o, --output DIR", "Folder to write to.")`."""
    *names, last = usage.split(", ")
    name, _, metavar = last.partition(" ")
    if metavar:
        more["metavar"] = metavar
    return typer.Option(*names, name, help=help, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Return an argument for `Annotated`. `metavar`: the word for its value."""
    return typer.Argument(metavar=metavar, help=help, **more)


StateOption = Annotated[
    Path | None, option("--state DIR", "Folder of the farm's state.", show_default="FARM_STATE or .farm")
]
JsonOption = Annotated[bool, option("--json", "Print JSON, and nothing else, on standard output.")]


@dataclass(frozen=True)
class Common:
    """The options that most commands have."""

    state: Path | None = None
    as_json: bool = False


HERE = Common()


def expanded(
    command: Callable[..., None],
    name: str,
    parameters: dict[str, tuple[Any, Any]],
    value: Callable[[dict[str, Any]], Any],
) -> Callable[..., None]:
    """Return a command with other parameters in place of one, each with its annotation and default.

    `value`: takes what was given for them out of a dictionary, and makes the one of it.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    shown = [
        inspect.Parameter(new, each.kind, default=default, annotation=annotation)
        for each in own
        for new, (annotation, default) in (
            parameters if each.name == name else {each.name: (each.annotation, each.default)}
        ).items()
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        made = value(given)
        command(**given, **{name: made})

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in shown}
    return run


def with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with `--state` and `--json` in place of its parameter `common`, if it has that one."""
    if "common" not in inspect.signature(command).parameters:
        return command
    options = {"state": (StateOption, None), "as_json": (JsonOption, False)}
    return expanded(command, "common", options, lambda given: Common(given.pop("state"), given.pop("as_json")))


def group_of(
    name: str,
    commands: Sequence[Callable[..., None]],
    help: str,
    *,
    bare: Callable[..., None] | None = None,
    implied: Callable[[str], bool] = lambda _: False,
    **more: Any,
) -> typer.Typer:
    """Return the group of these commands, each named as its function is, without a last `_`.

    `bare`: what runs where no command is named. `implied`: whether a word that is no command belongs to the first one,
    whose name was left out; the word is empty where there is none. `more`: for typer.
    """

    class Group(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            word = args[0] if args else ""
            is_named = word in (*self.commands, "--help", "-h") or not implied(word)
            return super().parse_args(ctx, args if is_named else [_name(commands[0]), *args])

    made = typer.Typer(name=name, cls=Group, help=help, **{"no_args_is_help": bare is None, **more})
    for command in commands:
        made.command(_name(command))(with_common_options(command))
    if bare is not None:
        made.callback(invoke_without_command=True)(with_common_options(bare))
    return made


def is_yaml(word: str) -> bool:
    """Return whether a word is the path of a YAML file."""
    return word.endswith((".yaml", ".yml"))


def _name(command: Callable[..., None]) -> str:
    return command.__name__.rstrip("_")


STANDARD_OUTPUT = "-"
"""The file name that means standard output."""
UNBOUNDED = 10_000
"""Columns where no terminal sets a width: nothing is wrapped or cut in a file or a pipe."""


def out() -> Console:
    """Console of results; as wide as the terminal. Elsewhere COLUMNS counts, and without it nothing is wrapped."""
    return Terminal(width=_width(sys.stdout), highlight=False)


def log() -> Console:
    """Console of progress and errors; the same width."""
    return Terminal(stderr=True, width=_width(sys.stderr), highlight=False)


def say(text: str) -> None:
    """One line of progress, as it is."""
    log().print(text, markup=False, soft_wrap=True)


def counted() -> Progress:
    """A bar on standard error of how many of all are done, and of the time that is left; it goes when all is done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=log(), transient=True)


def ask_secret(asks: str, otherwise: str, *, twice: bool = False) -> str:
    """Ask at the terminal for what it is not to show. Raises BadParameter without one; `otherwise` says what to do."""
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"a secret is asked for at a terminal, and there is none: {otherwise}")
    return str(typer.prompt(asks, hide_input=True, confirmation_prompt=twice, err=True))


def _width(stream: TextIO) -> int | None:
    """None: a terminal's own."""
    if stream.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) > 0 else UNBOUNDED


def print_json(value: Any) -> None:
    """Write one JSON document to standard output. Models are written by their JSON form."""
    sys.stdout.write(json.dumps(value, indent=1, default=_plain, allow_nan=False) + "\n")
    sys.stdout.flush()


def show_done(done: Done, *, as_json: bool, to: Console | None = None, once: str = "", **more: Any) -> None:
    """Show what came of an act; exit status 1 where not all was done. `to`: standard error, unless another console is
    given. `once`: what is printed this once, for people. `more`: further facts for programs."""
    if as_json:
        print_json({**done.data, **more})
    for line in done.lines if not (as_json and done.ok) else ():
        (to if to is not None and done.ok else log()).print(line, markup=False, soft_wrap=True)
    if once and not as_json:
        out().print(once, markup=False, highlight=False, soft_wrap=True)
    if not done.ok:
        raise typer.Exit(1)


def show_list(
    found: Sequence[Any],
    heads: Sequence[Head | str],
    row: Callable[[Any], Sequence[Cell]],
    *,
    as_json: bool,
    none: str = "",
    data: Callable[[Any], object] = asdict,
) -> None:
    """Show a list, in rows or as JSON. `none`: what people are told where there is nothing."""
    from orchestrator.report.listing import Listing

    if as_json:
        print_json([data(each) for each in found])
    else:
        out().print(Listing(heads, [row(each) for each in found]) if found or not none else none)


def do(act: str, *args: Any, common: Common, once: str = "", **options: Any) -> None:
    """Do an act, by its name in the audit, and show what came of it. `once`: the field that is told this once."""
    from orchestrator.acts import ACTS

    with open_door(common.state) as door:
        done = door.act(ACTS[act], *args, **options)
    show_done(done, as_json=common.as_json, once=done.data[once] if once else "")


def show_every(
    path: str,
    heads: Sequence[Head | str],
    row: Callable[[Any], Sequence[Cell]],
    *,
    common: Common,
    given: dict[str, str] | None = None,
    **more: Any,
) -> None:
    """Show the list that the API has at a path, as `show_list` does. `given`: what it is asked with."""
    from dashboards.answers.reading import READS

    with open_door(common.state) as door:
        found = door.every(READS[path].answer, **(given or {}))
    show_list(found, heads, row, as_json=common.as_json, **more)


def day(at: float | None) -> str:
    """Return a Unix time in local time, to the minute; empty where there is none."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) if at else ""


def print_rows(rows: Sequence[Any]) -> None:
    """The same of so many models or dataclasses that it takes a tenth of the time; an infinite figure is null."""
    from pydantic_core import to_json

    sys.stdout.write(to_json(rows, indent=1, ensure_ascii=True, inf_nan_mode="null").decode() + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    from pydantic import BaseModel

    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class Interrupted(Exception):
    """Ctrl-C, with a word on what goes on without the command."""


def describe(error: FarmError | CompileError) -> dict[str, Any]:
    """An error as data: what, where, and how to mend it."""
    if isinstance(error, FarmError):
        message = str(error.args[0]) if error.args else type(error).__name__
        return {
            "type": type(error).__name__,
            "cause": error.cause,
            "message": message,
            "device": error.device,
            "remedy": error.remedy,
        }
    return {"type": type(error).__name__, "cause": "compile", "message": str(error), "device": None, "remedy": None}


def show_error(message: str, remedy: str | None = None, device: str | None = None) -> None:
    """One red message on standard error, with what to do about it."""
    text = Text("error: ", style="bold red")
    text.append(f"[{device}] " if device else "", style="bold")
    text.append(message, style="red")
    if remedy:
        text.append(f"\n  remedy: {remedy}", style="default")
    log().print(text, soft_wrap=True)


def write_whole(path: Path, content: str | bytes, option: str) -> Path:
    """Write a file, whole or not at all. Raises SetupError where it cannot be written."""
    if not path.parent.is_dir():
        raise SetupError(f"{path}: there is no folder {path.parent}", remedy=f"mkdir -p {path.parent}")
    new = path.with_name(path.name + ".new")
    try:
        new.write_bytes(content.encode() if isinstance(content, str) else content)
        new.replace(path)
    except OSError as e:
        new.unlink(missing_ok=True)
        raise SetupError(f"{path}: cannot be written: {e.strerror}", remedy=f"give another file with {option}") from e
    return path
