"""Count which networks run: the table of `benchmarks/engine/README.md`, and each row that is not right.

    python -m benchmarks.engine.zoo.coverage [RAW.json ...]

Reads raw files of `python -m benchmarks.engine.zoo`, by default all that are kept, in the order of their names. Of a
network that was exported in the same way twice the later row counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command_line import run_command

RESULTS = Path(__file__).parents[2] / "results"
APIS = {"cpu": "CPU", "opencl": "OpenCL", "vulkan": "Vulkan"}
VERDICTS = {"ok": "right", "refused:": "refused", "WRONG": "off"}


class Export(NamedTuple):
    """A network as a tool wrote it."""

    network: str
    exporter: str


Verdicts = dict[Export, dict[str, str]]
"""Export -> API -> what came of it: `ok 1.2e-07`, `refused: ...` or `WRONG 2.2e-04 ...`."""


def verdicts_of(files: Iterable[Path]) -> Verdicts:
    """The last word on each export. Rows that no exporter or onnxruntime could make are left out."""
    found: Verdicts = {}
    for file in files:
        raw = json.loads(file.read_text())
        for row in raw if isinstance(raw, list) else raw["rows"]:
            said = {api: text for api, text in _said(row).items() if text.split()[0] in VERDICTS}
            if said:
                found.setdefault(Export(row["network"], row["exporter"].split()[0]), {}).update(said)
    return found


def _said(row: Mapping[str, Any]) -> Mapping[str, str]:
    """Some rows have APIs beside the other fields, and the refusal of the import by itself."""
    if "backends" in row:
        return {api: text for api, text in row["backends"].items() if api in APIS}
    refusal = str(row.get("import", ""))
    return {"cpu": refusal} if refusal.startswith("refused") else {api: row[api] for api in APIS if api in row}


def table(verdicts: Verdicts) -> str:
    """Return by exporter how many are right of those that were tried on each API, refused and off."""
    head = ["exporter", "exports", *(f"right on {name}" for name in APIS.values()), "refused", "off"]
    lines = [f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}"]
    names = sorted(
        {export.exporter for export in verdicts}, key=lambda name: -sum(export.exporter == name for export in verdicts)
    )
    for name in [*names, ""]:
        of_it = [said for export, said in verdicts.items() if not name or export.exporter == name]
        rights = [_right_of(of_it, api) for api in APIS]
        bad = [sum(any(text.startswith(word) for text in said.values()) for said in of_it) for word in _BAD]
        lines.append(f"| {' | '.join([name or '**all**', str(len(of_it)), *rights, *map(str, bad)])} |")
    return "\n".join(lines)


_BAD = ("refused:", "WRONG")


def _right_of(of_it: Iterable[Mapping[str, str]], api: str) -> str:
    tried = [said[api] for said in of_it if api in said]
    return f"{sum(text.startswith('ok') for text in tried)} of {len(tried)}" if tried else "-"


def left(verdicts: Verdicts) -> str:
    """A line an export that is refused or off, with the reason."""
    return "\n".join(
        f"{export.network} ({export.exporter}), {APIS[api]}: {' '.join(text.split())[:160]}"
        for export, said in sorted(verdicts.items())
        for api, text in said.items()
        if text.startswith(_BAD)
    )


def main() -> int:
    """Print both."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine.zoo.coverage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", type=Path)
    files = parser.parse_args().files or sorted(RESULTS.glob("*-zoo*.json"))
    verdicts = verdicts_of(files)
    print(f"{table(verdicts)}\n\n{left(verdicts)}")
    return 0


if __name__ == "__main__":
    run_command(main)
