"""The blocks called throttled although nothing throttled them, and how often one that was is found.

    python -m benchmarks.statistics.throttled --runs 600 -o results.json [--markdown TABLES.md]

Blocks and samples come from `simulated_blocks.py` and from this file, which share nothing with the product; its own
rules judge them. Of each run of clean blocks it is counted whether the farm throws away any block as throttled, and
what it says of the run as a whole. Same seed, same tables; 600 runs take a few minutes of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command_line import run_command
from benchmarks.statistics.simulated_blocks import Shape, blocks_ms
from benchmarks.statistics.simulations import options, tell
from orchestrator.analysis.statistics import Verdict, stability
from orchestrator.energy.throttling import change_of
from orchestrator.figures import times_of

SEED = 20261123
COUNTS = (5, 7, 10, 15, 20)
SAMPLES = (50, 200)
BETWEEN = (0.005, 0.02, 0.03, 0.05, 0.08)
SLOWER = (0.06, 0.08, 0.15, 0.30)
FROM = 0.6
"""Share of the block after which a throttled one is slower."""
Noise = Callable[[tuple[int, ...], np.random.Generator], np.ndarray]


class Within(NamedTuple):
    """The scatter of the samples of a block: factors about one."""

    name: str
    draw: Noise


def _normal(spread: float, kept: float = 0.0) -> Noise:
    def draw(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(size=shape)
        for i in range(1, shape[-1]) if kept else ():
            noise[..., i] = kept * noise[..., i - 1] + np.sqrt(1 - kept**2) * noise[..., i]
        return np.exp(spread * noise)

    return draw


def _levels(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.asarray((1 + 0.15 * (rng.random(shape) < 0.5)) * np.exp(0.01 * rng.normal(size=shape)))


def _tails(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.exp(0.02 * np.clip(rng.standard_t(2, size=shape), -50, 50))


QUIET = Within("0.5% within", _normal(0.005))
NOISY = (
    Within("5% within", _normal(0.05)),
    Within("10% within", _normal(0.10)),
    Within("20% within", _normal(0.20)),
    Within("outliers (t2) 2% within", _tails),
    Within("two levels 15% apart within", _levels),
    Within("AR(0.3), 5% within", _normal(0.05, 0.3)),
    Within("AR(0.6), 5% within", _normal(0.05, 0.6)),
    Within("AR(0.9), 5% within", _normal(0.05, 0.9)),
)
FOUND_IN = (QUIET, Within("2% within", _normal(0.02)), NOISY[0], NOISY[1])
CLEAN = (*((spread, QUIET) for spread in BETWEEN), *((0.02, within) for within in NOISY))


def clean(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield, of runs without a fault, the share with a block called throttled, and of each verdict but `stable`."""
    for between, within in CLEAN:
        for samples in SAMPLES:
            blocks = _blocks(between, within, samples, runs, max(COUNTS), rng).tolist()
            called = np.array([[_is_throttled(block) for block in run] for run in blocks])
            times = [[found for block in run if (found := times_of(block)) is not None] for run in blocks]
            for count in COUNTS:
                verdicts = [stability(run[:count]).verdict for run in times]
                yield {
                    "truth": f"{between:.1%} between, {within.name}",
                    "samples": samples,
                    "blocks": count,
                    "throttled": float(called[:, :count].any(axis=1).mean()),
                    "throttled_blocks": float(called[:, :count].mean()),
                    **{each: verdicts.count(each) / runs for each in (Verdict.DRIFTING, Verdict.BIMODAL)},
                }


def slower(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the share called throttled of blocks that become slower by a step or little by little."""
    for within in FOUND_IN:
        for samples in SAMPLES:
            for size in SLOWER:
                place = np.arange(samples) / samples
                step = 1 + size * (place >= FROM)
                ramp = 1 + size * np.clip((place - 0.2) / 0.6, 0, 1)
                row: dict[str, Any] = {"within": within.name, "samples": samples, "slower": size}
                for name, course in (("step", step), ("ramp", ramp)):
                    blocks = _blocks(0.02, within, samples, runs, 1, rng)[:, 0] * course
                    row[name] = float(np.mean([_is_throttled(block) for block in blocks.tolist()]))
                yield row


def _blocks(
    between: float, within: Within, samples: int, runs: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Times in ms by run, block and sample."""
    middles = blocks_ms(Shape("", "normal", between), runs, count, rng)
    return np.asarray(middles[..., None] * within.draw((runs, count, samples), rng))


def _is_throttled(block: list[float]) -> bool:
    found = change_of(block)
    return found is not None and found.throttled


def measure(runs: int, seed: int = SEED) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"runs": runs, "seed": seed, "clean": list(clean(runs, rng)), "slower": list(slower(runs, rng))}


def markdown(found: dict[str, Any]) -> Iterator[str]:
    """The tables, in percent."""
    counts = list(dict.fromkeys(row["blocks"] for row in found["clean"]))
    yield from (f"| clean, by blocks | {' | '.join(map(str, counts))} |", "|" + "---|" * (len(counts) + 1))
    for truth in dict.fromkeys(row["truth"] for row in found["clean"]):
        cells = [_worst(found["clean"], truth, count) for count in counts]
        yield f"| {truth} | {' | '.join(cells)} |"
    sizes = list(dict.fromkeys(row["slower"] for row in found["slower"]))
    yield from ("", f"| slower by | {' | '.join(f'{size:.0%}' for size in sizes)} |", "|" + "---|" * (len(sizes) + 1))
    for within, samples in dict.fromkeys((row["within"], row["samples"]) for row in found["slower"]):
        own = [row for row in found["slower"] if (row["within"], row["samples"]) == (within, samples)]
        cells = [f"{100 * row['step']:.0f} / {100 * row['ramp']:.0f}" for row in own]
        yield f"| {samples} inferences, {within} | {' | '.join(cells)} |"


def _worst(rows: list[dict[str, Any]], truth: str, count: int) -> str:
    """Throttled, drifting and bimodal, each at its worst number of samples."""
    own = [row for row in rows if (row["truth"], row["blocks"]) == (truth, count)]
    return " / ".join(f"{100 * max(row[name] for row in own):.1f}" for name in ("throttled", "drifting", "bimodal"))


def main() -> None:
    parser = options(__doc__, SEED, spreads=False)
    parser.add_argument("--runs", type=int, default=600, help="of each row of a table")
    given = parser.parse_args()
    found = measure(given.runs, given.seed)
    tell(found, markdown(found), given)


if __name__ == "__main__":
    run_command(main)
