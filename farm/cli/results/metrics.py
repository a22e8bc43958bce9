"""`farm metrics`: bring what records hold into the metrics of the time in which it was measured."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.access import open_database, settings_of
from farm.cli.output import HERE, STANDARD_OUTPUT, Common, group_of, log, option, print_json
from orchestrator.model.errors import SetupError
from orchestrator.model.quantity import counted

from .pairs import pair

if TYPE_CHECKING:
    from orchestrator.ledger.database import Database
    from orchestrator.metrics.backfill import Backfill
    from orchestrator.model.record import Record

HEAD_S = 3 * 3600.0
"""The age below which a running Prometheus may still hold samples in its head: blocks must not overlap that."""
PROMTOOL_S = 3600.0
SCRAPED = ("job=pocketfarm", "instance=127.0.0.1:9464")
"""Labels that Prometheus gives to what it scrapes by `dashboards/prometheus.yml` and `dashboards/targets.yml`."""
FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


def backfill(
    since: Annotated[
        datetime | None,
        typer.Option(formats=FORMATS, metavar="TIME", help="Only records that began then or later, e.g. `2026-11-01`."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=FORMATS, metavar="TIME", help="Only records that began then or earlier.")
    ] = None,
    device: Annotated[str | None, option("--device, -d SERIAL", "Only this device.")] = None,
    label: Annotated[
        list[str] | None,
        option(
            "--label NAME=VALUE",
            "Label of every series, as your Prometheus adds it to what it scrapes; may be repeated.",
            show_default=", ".join(SCRAPED),
        ),
    ] = None,
    output: Annotated[
        str | None, option("--output, -o FILE", "File to write.", show_default="standard output, `-`; with --tsdb none")
    ] = None,
    tsdb: Annotated[Path | None, option("--tsdb DIR", "Data folder of a Prometheus, which gets the blocks.")] = None,
    promtool: Annotated[str, option("--promtool PATH", "Path of promtool, which makes the blocks.")] = "promtool",
    common: Common = HERE,
) -> None:
    """Write the telemetry that phones sampled in their blocks as OpenMetrics text; with --tsdb into a Prometheus.

    Use it for blocks in which the phone was off its cable, so that the exporter had no data. Series and labels are
    those of the exporter; times are by the farm's clock; there is one sample per 15 s. Prometheus ignores samples that
    it already has, so the command may be repeated.

    Example: `farm metrics backfill --since 2026-11-01 --tsdb .farm/prometheus`
    """
    from orchestrator.metrics.backfill import merged

    if output is None and tsdb is None:
        output = STANDARD_OUTPUT
    if output == STANDARD_OUTPUT and common.as_json:
        raise typer.BadParameter("standard output takes no --json beside", param_hint="--output")
    labels = dict(map(_label, label or SCRAPED))
    tool = _tool(promtool, tsdb) if tsdb else ""
    first, last = _seconds(since, 0.0), _seconds(until, time.time() + HEAD_S)
    ended_before = time.time() - HEAD_S if tsdb else float("inf")
    with open_database(settings_of(common.state)) as database, log().status("reading"):
        found = merged(_records(database, first, last, device), labels, ended_before)
    count = _write(found, output, tsdb, tool)
    if common.as_json:
        print_json(
            {"records": found.records, "samples": count, "without_clock": found.without_clock, "too_new": found.too_new}
        )
    _tell(found, count)


def _records(database: Database, since: float, until: float, serial: str | None) -> Iterator[Record]:
    from orchestrator.ledger import records

    with database.read() as connection:
        keys = records.begun_between(connection, since, until, serial and records.known(connection, serial))
    for start in range(0, len(keys), records.BATCH):
        with database.read() as connection:
            packed = records.packed(connection, keys[start : start + records.BATCH])
        yield from records.unpacked(packed)


def _write(found: Backfill, output: str | None, tsdb: Path | None, tool: str) -> int:
    """Returns how many samples. Raises SetupError."""
    if output == STANDARD_OUTPUT:
        count = found.write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif output is not None:
        with Path(output).open("wb") as file:
            count = found.write(file)
    if tsdb is None:
        return count
    with tempfile.NamedTemporaryFile(prefix="pocketfarm-", suffix=".txt") as text:
        count = found.write(text)
        text.flush()
        if count:
            _make_blocks(tool, Path(text.name), tsdb)
    return count


def _make_blocks(tool: str, text: Path, tsdb: Path) -> None:
    done = subprocess.run(
        [tool, "tsdb", "create-blocks-from", "openmetrics", str(text), str(tsdb)],
        capture_output=True, text=True, timeout=PROMTOOL_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-500:]
        raise SetupError(f"{tool} made no blocks in {tsdb}: {said}", remedy="run it as the user whose folder that is")


def _tool(promtool: str, tsdb: Path) -> str:
    """Raises SetupError where the tool or the folder is missing."""
    if not tsdb.is_dir():
        raise SetupError(f"there is no folder {tsdb}", remedy="give Prometheus's --storage.tsdb.path")
    tool = shutil.which(promtool)
    if tool is None:
        raise SetupError(f"there is no {promtool}", remedy="install Prometheus, or name its promtool with --promtool")
    return tool


def _label(text: str) -> tuple[str, str]:
    name, value = pair(text, "--label", form := "NAME=VALUE of a label beside `serial`")
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or name == "serial":
        raise typer.BadParameter(f"{text!r} is not {form}", param_hint="--label")
    return name, value


def _seconds(when: datetime | None, default: float) -> float:
    """Unix time; without a zone it is this machine's."""
    return default if when is None else when.timestamp()


def _tell(found: Backfill, count: int) -> None:
    log().print(f"{counted(count, 'sample')} of {counted(found.records, 'record')}", soft_wrap=True)
    if found.without_clock:
        left = counted(
            found.without_clock, "record without the time of its samples", "records without their samples' times"
        )
        log().print(f"left out: {left} (of older workers)", soft_wrap=True)
    if found.too_new:
        log().print(f"left out: {counted(found.too_new, 'record')} of the last 3 h: run it again later", soft_wrap=True)


group = group_of(
    "metrics",
    (backfill,),
    "Write telemetry of records into Prometheus. Needs no running farm.\n\n"
    "Example: `farm metrics backfill --tsdb .farm/prometheus` (`--state DIR`, `--json`)",
)
