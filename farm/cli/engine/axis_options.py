"""The compiler's axes as options of a command: `farm plan` and `farm infer` have all, `farm tune run` has `threads`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import typer

from farm.cli.output import expanded, option
from kernels.options import COMPILE_AXES, Options
from kernels.options.axis import EVERY, Axis
from orchestrator.model.device import Api, Precision
from orchestrator.model.quantity import parse_bytes

BackendOption = Annotated[Api, option("--backend, -b", "Compute API.")]
PrecisionOption = Annotated[Precision, option("--precision, -p", "Arithmetic.")]


def with_compiler_options(
    only: Iterable[str] = COMPILE_AXES, *, backend: Api | None = Api.OPENCL
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--backend`, `--precision` and an option for each axis; its parameter `options` gets them.

    `only`: names of the axes that it offers. `backend`: the default; None: one must be given.
    """
    axes = {name: COMPILE_AXES[name] for name in only}
    core = {
        "backend": (BackendOption, backend or inspect.Parameter.empty),
        "precision": (PrecisionOption, Precision.FP32),
    }
    asked = core | {name: (_annotation(axis), None) for name, axis in axes.items()}

    def options_of(given: dict[str, Any]) -> Options:
        api, precision = given.pop("backend"), given.pop("precision")
        values = {name: _value(axis, given.pop(name), api.value) for name, axis in axes.items()}
        options = Options(api.value, precision.value, **{name: v for name, v in values.items() if v is not None})
        for name, axis in axes.items():  # the plan would not show what only the agent is told
            if axis.at_run and values[name] is not None and (why := axis.why_unused(api.value, vars(options))):
                raise typer.BadParameter(f"{axis.option} {why}")
        return options

    return lambda command: expanded(command, "options", asked, options_of)


def _annotation(axis: Axis) -> Any:
    """Return the annotation by which typer reads an axis's option."""
    help_text = f"{axis.help[0].upper()}{axis.help[1:]}."
    if axis.backends != EVERY:
        help_text = f"{' and '.join(axis.backends)}: {axis.help}."
    kind: Any = Literal[axis.words] if axis.words else str if axis.unit or axis.parse else axis.type
    facts: dict[str, Any] = {"help": help_text, "show_default": axis.otherwise}
    if axis.unit:
        facts["metavar"] = "SIZE"
    if axis.bounds:
        facts["min"], facts["max"] = axis.bounds
    if axis.names:
        facts["autocompletion"] = lambda incomplete: [
            name for name in dict.fromkeys(n for b in axis.names for n in axis.known(b)) if name.startswith(incomplete)
        ]
    return Annotated[kind | None, typer.Option(**facts)]


def _value(axis: Axis, given: Any, backend: str) -> Any:
    """Return the compiler's value of an option; None where nothing was given. Raises UsageError."""
    if given is None:
        return None
    if backend not in axis.backends:
        raise typer.BadParameter(f"{axis.option} is an option of {' and '.join(axis.backends)}, not of {backend}")
    try:
        value = parse_bytes(given) if axis.unit else axis.parse(given) if axis.parse else given
    except ValueError as e:
        raise typer.BadParameter(f"{axis.option}: {e}") from e
    if axis.refuse and (why := axis.refuse(value)):
        raise typer.BadParameter(f"{axis.option}: {why}")
    return value
