"""`farm compare`: two experiments, two nights, two sides of one experiment, or a saved baseline."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from farm.access import settings_of
from farm.cli import completion
from farm.cli.explain import hint
from farm.cli.output import (
    HERE,
    Common,
    argument,
    describe,
    option,
    out,
    print_json,
    print_rows,
    say,
    show_error,
    write_whole,
)
from farm.cli.results.pairs import WhereOption, pair, where_of
from orchestrator.model.errors import FarmError, NoData
from orchestrator.model.quantity import counted

if TYPE_CHECKING:
    from orchestrator.analysis.comparison import Rules, SideRow
    from orchestrator.report.compared import Content

DIFFERENT, UNUSABLE = 1, 2
SHOWN_ROWS = 40
FAIL_ON = ("worse", "missing", "better", "unknown", "nothing")
OWN = "each metric's own, which every table tells"
FileOption = Path | None


def compare(
    a: Annotated[
        str,
        argument(
            "A",
            "Id, name (a suite's too), `latest`, NAME~1 (the run before the newest), NAME~1-10 (ten of them), or "
            "a file of --save-baseline; several by commas.",
            autocompletion=completion.experiments,
        ),
    ],
    b: Annotated[
        str | None, argument("B", "The other side, in the same forms as A.", autocompletion=completion.experiments)
    ] = None,
    sides: Annotated[
        str | None, option("--sides AXIS=X,Y", "Instead of B: compare two values of an axis (or column) of A.")
    ] = None,
    where: WhereOption = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric NAME",
            "Only this metric; may be repeated. Differences are proven for a table of these rows alone.",
        ),
    ] = None,
    match: Annotated[
        Literal["device", "model"],
        option("--match device|model", "Compare the same device, or devices of the same model."),
    ] = "device",
    margin: Annotated[
        list[str] | None,
        option("--margin METRIC=SHARE", "Smaller differences count as the same; may be repeated.", show_default=OWN),
    ] = None,
    between: Annotated[
        list[str] | None,
        option(
            "--between METRIC=SHARE",
            "Standard deviation between nights of one phone, used where too few nights measure it.",
            show_default=OWN,
        ),
    ] = None,
    fail_on: Annotated[
        str, option("--fail-on WORDS", f"Verdicts that give exit status 1, separated by commas: {', '.join(FAIL_ON)}.")
    ] = "worse,missing",
    save_baseline: Annotated[
        FileOption, option("--save-baseline FILE.json", "Save A as a baseline; compare nothing.")
    ] = None,
    html: Annotated[FileOption, option("--html FILE", "Also write an HTML page.")] = None,
    markdown: Annotated[FileOption, option("--markdown FILE", "Also write Markdown.")] = None,
    junit: Annotated[
        FileOption, option("--junit FILE", "Also write JUnit XML, with one test case for each row.")
    ] = None,
    every: Annotated[bool, option("--all", "Print all rows, including those that are the same.")] = False,
    common: Common = HERE,
) -> None:
    """Compare two sides by device, network, backend, precision and metric: ratio, interval, and a verdict.

    A verdict is different, same (within a margin), or unknown (with the number of further blocks that it needs). Its
    error rate holds for the whole table. Exit status 0: nothing is worse or missing; 1: something is (see --fail-on);
    2: there is nothing to compare.

    Example: `farm compare nightly~1-10 nightly`, `farm compare latest --sides backend=opencl,vulkan`
    """
    if sum(each is not None for each in (b, sides, save_baseline)) != 1:
        raise typer.BadParameter("give one of B, --sides and --save-baseline", param_hint="B")
    on = _words(fail_on)
    rules, only_where = _rules(margin or [], between or []), where_of(where)
    with _unusable(as_json=common.as_json), _all_kept():
        if save_baseline is not None:
            _save(a, only_where, save_baseline, common.state, as_json=common.as_json)
            return
        content = _content(a, b, sides, only_where, match, rules, common.state, _metrics(metric or []))
        _write(content, html, markdown, junit, on, common.state)
    if common.as_json:
        print_rows(content.rows)
    else:
        _show(content, every=every)
    _end(content, on)


@contextmanager
def _unusable(*, as_json: bool) -> Iterator[None]:
    """Exit with a status of its own where sides cannot be compared: CI must not take it for a difference."""
    try:
        yield
    except FarmError as error:
        facts = describe(error)
        if as_json:
            print_json({"error": facts})
        show_error(facts["message"], facts["remedy"], facts["device"])
        raise typer.Exit(UNUSABLE) from error


@contextmanager
def _all_kept() -> Iterator[None]:
    """Turn the collector of cycles off: its repeated walks over a hundred thousand blocks, none of them garbage,
    took two fifths of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _content(
    a: str,
    b: str | None,
    sides: str | None,
    where: dict[str, str],
    match: Literal["device", "model"],
    rules: Rules,
    state: Path | None,
    metrics: frozenset[str],
) -> Content:
    from orchestrator.analysis import comparison
    from orchestrator.report.compared import Content

    from .sides import read_sides

    if b is not None:
        sides_read = read_sides(state, (a, b))
        first, second = (_only(side.rows, where, metrics) for side in sides_read)
        if sides_read[0].kept and sides_read[0].kept == sides_read[1].kept:
            raise NoData(
                f"A and B are the same: {', '.join(sides_read[0].kept)}",
                remedy="name two runs, or compare two values of an axis, e.g. `--sides backend=opencl,cpu`",
            )
        names = a, b
    else:
        axis, values = _axis(sides or "")
        sides_read = read_sides(state, (a,)) * 2
        side = sides_read[0]
        first, second = comparison.sides_of(_only(side.rows, where, metrics), axis, *values)
        names = f"{a} {axis}={values[0]}", f"{a} {axis}={values[1]}"
    kept = sides_read[0].kept, sides_read[1].kept
    serials = frozenset().union(*(each.serials for each in sides_read))
    rows = comparison.with_engines(comparison.compare(first, second, rules, match))
    return Content(*names, rows, rules, kept, serials)


def _only(rows: list[SideRow], where: dict[str, str], metrics: frozenset[str] = frozenset()) -> list[SideRow]:
    from orchestrator.analysis.comparison import of_metrics, only

    return of_metrics(only(rows, where), metrics)


def _metrics(names: list[str]) -> frozenset[str]:
    from orchestrator.analysis.comparison import METRICS

    if wrong := set(names) - set(METRICS):
        raise typer.BadParameter(f"{', '.join(sorted(wrong))}: there are {', '.join(METRICS)}", param_hint="--metric")
    return frozenset(names)


def _save(a: str, where: dict[str, str], path: Path, state: Path | None, *, as_json: bool) -> None:
    from orchestrator.exchange import baselines

    from .sides import read_sides

    (side,) = read_sides(state, (a,))
    rows = [row for row in _only(side.rows, where) if not row.excluded]
    write_whole(path, baselines.as_bytes(side.experiments, rows), "--save-baseline")
    if as_json:
        print_json({"file": path, "experiments": side.experiments, "blocks": len(rows)})
    say(f"{counted(len(rows), 'block')} of {', '.join(side.experiments)} saved to {path}")


def _write(
    content: Content,
    html: Path | None,
    markdown: Path | None,
    junit: Path | None,
    on: frozenset[str],
    state: Path | None,
) -> None:
    from farm import endpoints
    from orchestrator.report import compared

    made = (
        (html, "--html", lambda: compared.as_html(content, endpoints.pages_of(settings_of(state).state))),
        (markdown, "--markdown", lambda: compared.as_markdown(content)),
        (junit, "--junit", lambda: compared.as_junit(content, on)),
    )
    for path, name, make in made:
        if path is not None:
            write_whole(path, make(), name)
            say(f"written to {path}")


def _show(content: Content, *, every: bool) -> None:
    from orchestrator.report import compared, listing

    counts = ", ".join(f"{number} {name}" for name, number in compared.headline(content))
    for told in (compared.usable(content), compared.answer(content), counts):
        out().print(Text(told, style="bold"))
    lines, left = compared.lines_of(content, SHOWN_ROWS, every=every)
    if lines:
        rows, narrow = compared.section(content, lines), list(compared.narrow(content, lines))
        out().print(listing.part(rows, most=len(lines), narrow=narrow))
    if left:
        out().print(Text(f"{counted(left, 'row')} more that are not the same: --all shows them", style="dim"))
    for note in compared.notes(content):
        out().print(Text(note, style="dim"))
    hint("settled", "detects", "margin")


def _end(content: Content, on: frozenset[str]) -> None:
    from orchestrator.report.compared import fails

    if any(fails(row, on) for row in content.rows):
        raise typer.Exit(DIFFERENT)


def _words(text: str) -> frozenset[str]:
    words = frozenset(filter(None, (each.strip() for each in text.split(","))))
    if wrong := words - set(FAIL_ON):
        raise typer.BadParameter(
            f"{', '.join(sorted(wrong))}: allowed are {', '.join(FAIL_ON)}", param_hint="--fail-on"
        )
    return words


def _axis(text: str) -> tuple[str, tuple[str, str]]:
    axis, value = pair(text, "--sides", "AXIS=X,Y")
    values = [each.strip() for each in value.split(",")]
    if len(values) != 2 or not all(values) or values[0] == values[1]:
        raise typer.BadParameter(f"{text!r} is not AXIS=X,Y with two values", param_hint="--sides")
    return axis, (values[0], values[1])


def _rules(margins: list[str], between: list[str]) -> Rules:
    from orchestrator.analysis.comparison import Rules

    return Rules(margins=_shares(margins, "--margin", least=1e-6), between=_shares(between, "--between", least=0.0))


def _shares(texts: list[str], option: str, least: float) -> dict[str, float]:
    from orchestrator.analysis.comparison import METRICS
    from orchestrator.model.quantity import parse_share

    found = {}
    for text in texts:
        metric, value = pair(text, option, "METRIC=SHARE, such as latency=2%")
        try:
            found[metric] = parse_share(value)
        except ValueError as e:
            raise typer.BadParameter(str(e), param_hint=option) from e
        if metric not in METRICS or not least <= found[metric] < 1:
            raise typer.BadParameter(
                f"{text!r}: metrics are {', '.join(METRICS)}, shares below 100 %", param_hint=option
            )
    return found
