"""The coverage of intervals over blocks, what stopping early leaves of it, and how often verdicts are wrong.

    python -m benchmarks.statistics.coverage --runs 600 -o results.json [--markdown TABLES.md]

The blocks come from `simulated_blocks.py`, which shares nothing with the product; the product's own functions judge
them. Same seed, same tables. With 600 runs intervals' coverage of 95 % is known within a percent point, and the
whole takes three minutes of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulated_blocks import LEVEL_MS, SHAPES, Shape, blocks_ms, samples_ms, truth_ms
from benchmarks.statistics.simulations import options, spread, tell
from orchestrator.analysis.statistics import median_interval, stability
from orchestrator.analysis.stopping_rule import Need, decide
from orchestrator.figures import BlockFigures, Times, times_of
from orchestrator.model.device import Source
from orchestrator.model.experiment import Sampling
from orchestrator.model.record import Outcome

SEED = 20261123
COUNTS = tuple(range(3, 21))
STOPPED = (
    *(Shape(f"normal {spread:.0%}", "normal", spread) for spread in (0.01, 0.02, 0.03, 0.05, 0.10)),
    Shape("skewed 10%", "skewed", 0.10),
    Shape("outliers 2%", "outliers", 0.02),
    Shape("AR(0.3) 2%", "normal", 0.02, correlation=0.3),
    Shape("AR(0.6) 2%", "normal", 0.02, correlation=0.6),
    Shape("two levels 50/50", "levels", 0.01),
)
CAP = 30
FIRST = (3, 15)
"""First blocks: up to `LEAST_BLOCKS` of the rule make no difference."""
JUDGED = (5, 7, 10, 15, 20)
SAMPLES = 50
MORE_INTERVALS, MORE_CLEAN = 2, 3
"""The multiples of intervals drawn, and of clean runs judged: 99 % are to be told from less, 1 % from more."""
Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def intervals(shape: Shape, runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield for each number of blocks coverage, the level that is promised, and the width."""
    truth = truth_ms(shape)
    for count in COUNTS:
        found = [median_interval(row) for row in blocks_ms(shape, runs * MORE_INTERVALS, count, rng).tolist()]
        known = [each for each in found if each is not None]
        yield {
            "shape": shape.name,
            "blocks": count,
            "covered": _share(each.low <= truth <= each.high for each in known),
            "level": known[0].level,
            "conditional": known[0].conditional,
            "half_width": float(np.median([each.half_width / LEVEL_MS for each in known])),
        }


def stopping(shape: Shape, runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield for each target and number of first blocks the coverage of all, and of those that met the target."""
    for target in (0.05, 0.02):
        for first in FIRST:
            sampling = Sampling(blocks=first, target_interval=target, max_blocks=CAP)
            found = [_stop(row, sampling, truth_ms(shape)) for row in blocks_ms(shape, runs, CAP, rng).tolist()]
            met = [covered for covered, need, _ in found if need is Need.TARGET_MET]
            yield {
                "shape": shape.name,
                "target": target,
                "first": first,
                "covered": _share(covered for covered, _, _ in found),
                "met": len(met) / runs,
                "covered_met": _share(met) if met else None,
                "blocks": float(np.mean([made for _, _, made in found])),
            }


def _stop(values: Sequence[float], sampling: Sampling, truth: float) -> tuple[bool, Need, int]:
    made = sampling.blocks
    blocks = [_block(value, i) for i, value in enumerate(values[:made])]
    while (need := decide(sampling, blocks, made).need) is Need.MORE:
        blocks.append(_block(values[made], made))
        made += 1
    found = median_interval(values[:made], watched=True)
    return found is not None and found.low <= truth <= found.high, need, made


def _block(value: float, number: int) -> BlockFigures:
    return BlockFigures(
        experiment_id="e", job_id=f"j{number}", attempt=1, token=number, cell_id="c", block=number, worker="w",
        serial="A", source=Source.PHONE, started_at=number, ended_at=number, outcome=Outcome.OK,
        times=times_of([value]),
    )  # fmt: skip


def _drift(size: float) -> Change:
    return lambda values, _: values * (1 + size * np.linspace(-0.5, 0.5, values.shape[1]))


def _step(size: float) -> Change:
    return lambda values, _: values * (1 + size * (np.arange(values.shape[1]) >= values.shape[1] // 2))


def _levels(size: float, share: float) -> Change:
    return lambda values, rng: values * (1 + size * (rng.random(values.shape) < share))


def _clean(values: np.ndarray, _: np.random.Generator) -> np.ndarray:
    return values


class Truth(NamedTuple):
    """The truth about blocks, whose samples scatter."""

    name: str
    between: float
    within: float
    change: Change


TRUTHS = (
    *(Truth(f"clean, {s:.1%} between, 0.5% within", s, 0.005, _clean) for s in (0.005, 0.02, 0.03, 0.05, 0.08)),
    Truth("clean, 2.0% between, 5% within", 0.02, 0.05, _clean),
    Truth("clean, 0.5% between, 10% within", 0.005, 0.10, _clean),
    *(Truth(f"drift 5%, {s:.1%} between", s, 0.005, _drift(0.05)) for s in (0.005, 0.01)),
    *(Truth(f"step 5%, {s:.1%} between", s, 0.005, _step(0.05)) for s in (0.005, 0.01, 0.02)),
    *(Truth(f"levels 8% 50/50, {s:.1%} between", s, 0.005, _levels(0.08, 0.5)) for s in (0.005, 0.01)),
    Truth("levels 8% 70/30, 0.5% between", 0.005, 0.005, _levels(0.08, 0.3)),
)


def verdicts(truth: Truth, runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield for each number of blocks the share of each verdict."""
    many, found = runs, {}
    if truth.change is _clean:
        many = runs * MORE_CLEAN
        rows = _times(truth, many, max(JUDGED), rng)  # whose first blocks are clean, too
        found = {count: [stability(row[:count]).verdict.value for row in rows] for count in JUDGED}
    else:
        found = {count: [stability(row).verdict.value for row in _times(truth, many, count, rng)] for count in JUDGED}
    for count, each in found.items():
        shares = {verdict: each.count(verdict) / many for verdict in sorted(set(each))}
        yield {"truth": truth.name, "blocks": count, "runs": many, **shares}


def _times(truth: Truth, runs: int, count: int, rng: np.random.Generator) -> list[list[Times]]:
    """Return the times of the blocks of each run."""
    middles = truth.change(blocks_ms(Shape("", "normal", truth.between), runs, count, rng), rng)
    drawn = samples_ms(middles, truth.within, SAMPLES, rng).tolist()
    return [[times for block in row if (times := times_of(block)) is not None] for row in drawn]


def _share(found: Iterable[bool]) -> float:
    return float(np.mean(list(found)))


PARTS: dict[str, tuple[Callable[..., Iterator[dict[str, Any]]], Sequence[Shape | Truth]]] = {
    "intervals": (intervals, SHAPES), "stopping": (stopping, STOPPED), "verdicts": (verdicts, TRUTHS)
}  # fmt: skip


def measure(runs: int, seed: int = SEED, jobs: int = 1) -> dict[str, Any]:
    """All tables, each row of them with chance of its own: the same with any number of jobs."""
    tasks = [(name, place, runs, seed) for name, (_, rows) in PARTS.items() for place in range(len(rows))]
    found = list(zip(tasks, spread(_part, tasks, jobs), strict=True))
    tables = {name: [row for task, rows in found if task[0] == name for row in rows] for name in PARTS}
    return {"runs": runs, "seed": seed, **tables}


def _part(task: tuple[str, int, int, int]) -> list[dict[str, Any]]:
    name, place, runs, seed = task
    make, rows = PARTS[name]
    return list(make(rows[place], runs, np.random.default_rng((seed, list(PARTS).index(name), place))))


def main() -> None:
    parser = options(__doc__, SEED)
    help_text = "of each cell; of intervals twice, of clean verdicts thrice as many"
    parser.add_argument("--runs", type=int, default=600, help=help_text)
    given = parser.parse_args()
    found = measure(given.runs, given.seed, given.jobs)
    tell(found, markdown(found), given)


def markdown(found: dict[str, Any]) -> Iterator[str]:
    """The tables, in percent."""
    yield from ("", "Coverage of the interval of the median, %:", "")
    columns = dict.fromkeys(row["blocks"] for row in found["intervals"])
    levels = {row["blocks"]: row for row in found["intervals"]}
    yield from _heading("blocks", columns)
    labels = (
        f"{levels[n]['level']:.1%}".replace(".0%", "%") + ("*" if levels[n]["conditional"] else "") for n in columns
    )
    yield _line("says", labels)
    for shape in dict.fromkeys(row["shape"] for row in found["intervals"]):
        yield _line(shape, (f"{row['covered']:.1%}"[:-1] for row in found["intervals"] if row["shape"] == shape))
    yield from ("", "\\* if successive blocks are independent.", "")
    yield from (f"Stopping by the interval, at most {CAP} blocks; coverage, coverage where the target was met, %:", "")
    keys = list(dict.fromkeys((row["target"], row["first"]) for row in found["stopping"]))
    yield from _heading("target, first blocks", (f"±{target:.0%}, {first}" for target, first in keys))
    for shape in dict.fromkeys(row["shape"] for row in found["stopping"]):
        yield _line(shape, (_stopped(row) for row in found["stopping"] if row["shape"] == shape))
    yield from ("", "Verdicts, % drifting / bimodal:", "")
    yield from _heading("truth, by blocks", dict.fromkeys(row["blocks"] for row in found["verdicts"]))
    for truth in dict.fromkeys(row["truth"] for row in found["verdicts"]):
        rows = (row for row in found["verdicts"] if row["truth"] == truth)
        yield _line(truth, (f"{100 * row.get('drifting', 0):.1f} / {100 * row.get('bimodal', 0):.1f}" for row in rows))


def _stopped(row: dict[str, Any]) -> str:
    met = "-" if row["covered_met"] is None else f"{row['covered_met']:.0%}"[:-1]
    return f"{row['covered']:.0%}"[:-1] + f", {met} ({row['met']:.0%} met, {row['blocks']:.0f} blocks)"


def _heading(first: str, columns: Iterable[object]) -> tuple[str, str]:
    names = [first, *map(str, columns)]
    return _line(names[0], names[1:]), "|" + "---|" * len(names)


def _line(first: str, cells: Iterable[str]) -> str:
    return f"| {first} | {' | '.join(cells)} |"


if __name__ == "__main__":
    run_command(main)
