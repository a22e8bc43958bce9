"""The common parts of the simulations: options, draws spread over processes, and a file that grows row by row."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

Task = TypeVar("Task")
Found = TypeVar("Found")


def options(about: str | None, seed: int, *, spreads: bool = True) -> argparse.ArgumentParser:
    """Return the options of all. `spreads`: whether processes share the draws."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=seed)
    if spreads:
        parser.add_argument("--jobs", type=int, default=1, help="processes at a time; the figures are the same")
    parser.add_argument("-o", "--output", type=Path, help="JSON file")
    parser.add_argument("--markdown", type=Path, help="file for the tables of docs/measuring.md, of what has some")
    return parser


def tell(found: object, tables: Iterable[str], given: argparse.Namespace) -> None:
    """Print the tables; write them, and what was found, to files that are asked for."""
    text = "\n".join(tables)
    if given.output:
        given.output.write_text(json.dumps(found, indent=1) + "\n")
    if given.markdown:
        given.markdown.write_text(text + "\n")
    print(text)


def spread(judge: Callable[[Task], Found], tasks: Iterable[Task], jobs: int, together: int = 1) -> Iterator[Found]:
    """Yield what is found of each task, in their order. A task draws with a seed of its own.

    `together`: short tasks are handed to a process by so many.
    """
    if jobs == 1:
        yield from map(judge, tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(judge, tasks, chunksize=together)


def keep(rows: Iterable[Mapping[str, object]], given: argparse.Namespace, **told: Any) -> None:
    """Print each row, and write those so far with the seed, the number of processes, and what else is told."""
    found, begun = [], time.monotonic()
    for row in rows:
        found.append(row)
        print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)
        if given.output is not None:
            seconds = round(time.monotonic() - begun, 1)
            kept = {"seed": given.seed, **told, "jobs": given.jobs, "seconds": seconds, "found": found}
            given.output.write_text(json.dumps(kept, indent=1) + "\n")
