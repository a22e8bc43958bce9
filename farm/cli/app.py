"""The application: all commands, and what happens with their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from kernels.errors import CompileError
from orchestrator.model.errors import FarmError
from orchestrator.model.foreign import check_text

from .output import Interrupted, describe, option, out, print_json, show_error, with_common_options

USAGE, FAILED, INTERRUPTED = 2, 1, 130

COMMANDS = {
    "The farm": {
        "fleet.lifecycle": "up down doctor",
        "fleet.devices": "devices release",
        "fleet.engines": "engines",
        "fleet.hold": "hold",
        "fleet.hosts": "host",
        "fleet.web": "web",
        "fleet.enrol": "enrol",
        "fleet.restore": "restore",
        "ledger.audit": "audit",
        "people.people": "people",
        "people.tokens": "tokens",
        "people.links": "links",
        "people.webhooks": "webhooks",
        "people.projects": "projects",
    },
    "People": {"people.login": "login logout"},
    "Experiments": {
        "experiments.experiments": "run status watch cancel retry",
        "experiments.job": "job",
        "results.results": "results report",
        "results.plot": "plot",
        "results.export": "export",
        "results.metrics": "metrics",
        "results.dataset": "dataset",
        "engine.quantize": "quantize",
        "results.imports": "import",
        "experiments.records": "records",
        "ledger.ledger": "ledger",
        "results.best": "best",
        "results.rank": "rank",
        "nights.compare": "compare",
        "nights.history": "history",
        "nights.nightly": "nightly",
        "nights.morning": "morning",
        "nights.changes": "changes",
        "results.agreement": "agreement",
        "results.energy": "energy",
        "queueing.queue": "queue",
    },
    "The engine, outside the queue": {"engine.engine": "networks plan infer", "engine.tune": "tune"},
    "Help": {"schema": "schema", "demo": "demo", "explain": "explain"},
}
"""Part of the help -> module -> its commands and its group, in the order of the help."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        out().print(f"pocketfarm {version('pocketfarm')}")
        raise typer.Exit


def _common(
    _: Annotated[bool, option("--version", "Print the version and end.", callback=_version, is_eager=True)] = False,
) -> None:
    """A device farm for deep learning on phone GPUs.

    Start with `farm doctor`, then `farm demo`.
    """


def application(command: str | None = None) -> typer.Typer:
    """The commands of the module that has this one: loading all of them takes longer than most run. Else all."""
    made = typer.Typer(
        name="farm",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_common)
    every = [(panel, name, names.split()) for panel, own in COMMANDS.items() for name, names in own.items()]
    for panel, name, names in [each for each in every if command in each[2]] or every:
        module = import_module(f"{__package__}.{name}")
        group = getattr(module, "group", None)
        for word in names:
            if group is not None and group.info.name == word:
                made.add_typer(group, rich_help_panel=panel)
            else:
                made.command(word, rich_help_panel=panel)(with_common_options(getattr(module, word)))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status: 0 all is well, 1 not so, 2 wrong usage, 124 timed out, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given == ["--version"]:
            _version(True)
        check_text(*given)
        result = application(*given[:1])(given, standalone_mode=False, prog_name="farm")
    except (KeyboardInterrupt, Interrupted) as interrupt:
        return _interrupted(str(interrupt) or None, as_json="--json" in given)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing to say to it
        return FAILED
    except Exception as error:
        return _report(error, as_json="--json" in given)
    if result == INTERRUPTED:  # so typer tells a KeyboardInterrupt
        return _interrupted(None, as_json="--json" in given)
    return result if isinstance(result, int) else 0


def _interrupted(remedy: str | None, *, as_json: bool) -> int:
    if as_json:
        print_json({"error": _data("Interrupted", "interrupted", "interrupted", remedy)})
    show_error("interrupted", remedy)
    return INTERRUPTED


def _report(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong, in the form that was asked for; the exit status."""
    if isinstance(error, typer.Exit):
        return int(error.exit_code)
    if isinstance(error, typer.Abort):
        show_error("aborted")
        return FAILED
    if isinstance(error, typer.TyperException):
        return _report_usage(error, as_json)
    if _debug():
        raise error
    facts = _facts(error)
    if as_json:
        print_json({"error": facts})
    show_error(facts["message"], facts["remedy"], facts["device"])
    return FAILED


def _report_usage(error: typer.TyperException, as_json: bool) -> int:
    message = error.format_message().replace(": Value error, ", ": ")  # the prefix is pydantic's
    if as_json:
        print_json({"error": {"type": "UsageError", "cause": "usage", "message": message}})
    if message:
        context = getattr(error, "ctx", None)
        show_error(message, f"`{context.command_path if context else 'farm'} --help` shows how to call it")
    return int(getattr(error, "exit_code", USAGE))


def _facts(error: Exception) -> dict[str, Any]:
    if isinstance(error, FarmError | CompileError):
        return describe(error)
    if isinstance(error, OSError) and error.filename:
        remedy = "check the path, its permissions and the room on its disk"
        return _data(type(error).__name__, "file", f"{error.filename}: {error.strerror}", remedy)
    # the farm's own: the message says which, FARM_DEBUG=1 shows where
    remedy = "set FARM_DEBUG=1 to see where it comes from, and report it"
    return _data(type(error).__name__, "internal", f"{type(error).__name__}: {error}", remedy)


def _data(name: str, cause: str, message: str, remedy: str | None) -> dict[str, Any]:
    return {"type": name, "cause": cause, "message": message, "device": None, "remedy": remedy}


def _debug() -> bool:
    from pydantic import ValidationError

    from orchestrator.system.config import Settings

    try:
        return Settings().debug
    except ValidationError:
        return False
