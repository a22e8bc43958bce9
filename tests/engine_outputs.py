"""Recorded outputs of engines' own benchmarks, and what this farm reads in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from orchestrator.model.device import Api, Precision
from orchestrator.model.event import Line
from workers.engines import Engines, Host
from workers.engines.folder import Asked, FolderEngine, Told

FOLDER = Path(__file__).parent / "data" / "engine_outputs"


@dataclass(frozen=True)
class Output:
    engine: str
    name: str
    text: str
    asked: Asked
    stream: Any
    ms: tuple[float, ...]
    refused: str
    cause: str


@cache
def engines() -> dict[str, FolderEngine]:
    return {each.name: each for each in Engines(Host.alone(Path("nowhere"))) if isinstance(each, FolderEngine)}


@cache
def outputs() -> tuple[Output, ...]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in yaml.load(path.read_text(), yaml.CSafeLoader):
            given = case["asked"]
            own = {axis.name: axis.default for axis in engines()[path.stem].axes}
            axes = {"threads": 0} | own | given.get("axes", {})
            asked = Asked("m", Api(given["backend"]), Precision(given.get("precision", "fp32")), given["samples"],
                          given.get("warmup", 1), axes | {"shape": "[1]"})  # fmt: skip
            found.append(
                Output(path.stem, case["name"], case["text"], asked, given.get("stream", "stdout"),
                       tuple(case.get("ms", ())), case.get("refused", ""), case.get("cause", "unread_output"))
            )  # fmt: skip
    return tuple(found)


def lines_of(text: str, stream: Any = "stdout") -> list[Line]:
    """The lines as the agent tells them."""
    parts = text.split("\n")
    whole = [True] * (len(parts) - 1) + [False]
    rows = [(part, is_whole) for part, is_whole in zip(parts, whole, strict=True) if part or is_whole]
    return [
        Line(seq=seq, t_ns=10**13 + seq, index=0, phase="timed", stream=stream, text=part, whole=is_whole)
        for seq, (part, is_whole) in enumerate(rows)
    ]


def read(output: Output, text: str | None = None) -> Told:
    """Return what is read in an output, or in another text in its place. Raises Unread."""
    return engines()[output.engine].read(lines_of(output.text if text is None else text, output.stream), output.asked)
