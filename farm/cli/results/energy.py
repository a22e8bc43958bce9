"""`farm energy`: joules per inference from power traces that others recorded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from farm.cli.explain import hint
from farm.cli.output import JsonOption, log, option, out, print_json, write_whole

if TYPE_CHECKING:
    from orchestrator.exchange.power_traces import Recording, Told
    from orchestrator.exchange.power_traces.comparison import Comparison, Powers
    from orchestrator.model.power import Estimate

POWERS = ("baseline_power_w", "load_power_w", "net_power_w")
ENERGY = "energy_per_inference_j"
TITLES = {"baseline_power_w": "baseline", "load_power_w": "load", "net_power_w": "net: load - baseline"}


def energy(
    baseline: Annotated[list[Path], option("--baseline FILE", "Trace of the phone at rest; may be repeated.")],
    load: Annotated[list[Path], option("--load FILE", "Trace of the phone under load; may be repeated.")],
    seconds_per_inference: Annotated[
        float | None, option("--seconds-per-inference S", "Duration of one inference in s.", min=1e-9)
    ] = None,
    form: Annotated[
        str | None,
        option(
            "--format trepn|monsoon|joulescope|otii|nvidia-smi|perfetto|csv",
            "Format of the files.",
            show_default="by their content",
        ),
    ] = None,
    time_unit: Annotated[
        str | None, option("--time-unit ns|us|ms|s", "Unit of the times, if the files do not give it.")
    ] = None,
    column: Annotated[
        str | None, option("--column TITLE", "Column of the power; for a perfetto trace `battery` or `rails`.")
    ] = None,
    volts: Annotated[
        float | None, option("--volts V", "Voltage, for traces that hold only a current.", min=1e-3)
    ] = None,
    plot: Annotated[Path | None, option("--plot FILE", "Draw the traces into a .svg, .png or .html file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute mean power, net power and joules per inference from recorded power traces.

    Reads Trepn, Monsoon, Joulescope, Otii, nvidia-smi and perfetto files, and any CSV with units.

    Prints the plain mean of the readings, as studies publish it (for several files the mean of their means), and the
    mean weighted by time. Each has an interval, of 95 % where the readings support that. Needs no farm.

    Example: `farm energy --baseline idle.csv --load run1.csv --load run2.csv --seconds-per-inference 0.2071`
    """
    from orchestrator.exchange.power_traces.comparison import compare

    said = _told(time_unit, column, volts)
    groups = {"baseline": _read(baseline, form, said), "load": _read(load, form, said)}
    found = compare(groups["baseline"], groups["load"], seconds_per_inference)
    if plot is not None:
        _draw(groups, plot)
    if as_json:
        print_json(as_data(found))
    else:
        _show(found)
        hint("gross", "net", "warning")


def _told(time_unit: str | None, column: str | None, volts: float | None) -> Told:
    from orchestrator.exchange.power_traces import UNITS, Told

    if time_unit not in (None, *UNITS):
        raise typer.BadParameter(f"{time_unit!r} is none of {', '.join(UNITS)}", param_hint="--time-unit")
    return Told(time_unit, column, volts)


def _read(paths: list[Path], form: str | None, said: Told) -> list[Recording]:
    from orchestrator.exchange.power_traces import FORMATS, read_trace

    known = next((each for each in FORMATS if each == form), None)
    if form is not None and known is None:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(FORMATS)}", param_hint="--format")
    return [recording for path in paths for recording in read_trace(path, known, said)]


def as_data(found: Comparison) -> dict[str, Any]:
    """The plain figures at the top, the weighted ones under `time_weighted`, the rest under keys of its own."""
    return {
        **_values(found.plain),
        "time_weighted": _values(found.time_weighted),
        "intervals": {
            "level": found.level,
            "plain": _intervals(found.plain),
            "time_weighted": _intervals(found.time_weighted),
        },
        "seconds_per_inference": found.seconds_per_inference,
        "method": found.method,
        "traces": found.traces,
        "doubts": [{**doubt.model_dump(mode="json"), "remedy": doubt.remedy} for doubt in found.doubts],
    }


def _values(powers: Powers) -> dict[str, float | None]:
    given = {name: getattr(powers, name) for name in (*POWERS, ENERGY)}
    return {name: None if estimate is None else estimate.value for name, estimate in given.items()}


def _intervals(powers: Powers) -> dict[str, dict[str, float] | None]:
    given = {name: getattr(powers, name) for name in (*POWERS, ENERGY)}
    return {
        name: None if estimate is None else estimate.model_dump(include={"low", "high", "std"})
        for name, estimate in given.items()
    }


def _draw(groups: dict[str, list[Recording]], path: Path) -> None:
    from orchestrator.report.traces import Curve, draw

    curves = {name: [Curve(each.path.name, each.t_s, each.power_w) for each in own] for name, own in groups.items()}
    picture, letters = draw(curves, path)
    write_whole(path, picture, "--plot")
    log().print(f"traces drawn into {path}.{letters}", markup=False)


def _show(found: Comparison) -> None:
    from orchestrator.report.listing import Head, Listing

    interval = f"{found.level:.0%} interval".replace("%", " %") if found.level else "interval, less than 95 %"
    heads = [Head(name, True) for name in ("plain mean", interval, "weighted by time", interval)]
    rows: list[Sequence[Text | str]] = []
    for name in POWERS:
        cells = [_cell(getattr(powers, name), 1e3, ".2f") for powers in (found.plain, found.time_weighted)]
        rows.append((f"{TITLES[name]}, mW", *(text for cell in cells for text in cell)))
    if found.plain.energy_per_inference_j is not None and found.time_weighted.energy_per_inference_j is not None:
        both = (found.plain.energy_per_inference_j, found.time_weighted.energy_per_inference_j)
        cells = [_cell(estimate, 1.0, ".4g") for estimate in both]
        rows.append(tuple(f"[bold]{text}[/]" for text in ("an inference, J", *(t for cell in cells for t in cell))))
    console = out()
    console.print(Listing(("", *heads), rows, header_style="dim"))
    console.print(_traces(found))
    for doubt in found.doubts:
        where = f"{escape(doubt.file)}: " if doubt.file else ""
        console.print(f"[yellow]warning[/] {where}{escape(doubt.detail)}\n      [dim]{doubt.remedy}[/]", soft_wrap=True)


def _cell(estimate: Estimate, scale: float, form: str) -> tuple[str, str]:
    low, high = format(estimate.low * scale, form), format(estimate.high * scale, form)
    return format(estimate.value * scale, form), f"[dim]{low} to {high}[/]"


def _traces(found: Comparison) -> RenderableType:
    from orchestrator.report.listing import Head, Listing

    figures = [Head(name, True) for name in ("readings", "s", "mean mW", "by time")]
    rows = []
    for each in found.traces:
        means = (f"{each.mean_w.value * 1e3:.2f}", f"{each.time_weighted_w.value * 1e3:.2f}")
        origin = escape(f"{each.column}; {each.times}")
        rows.append(
            (each.role, escape(each.file), each.format, origin, str(each.readings), f"{each.duration_s:.1f}", *means)
        )
    return Listing(("trace", "file", "format", "power from; times", *figures), rows, header_style="dim")
