"""The energy of simulated blocks against the truth, and how often faults are found.

    python -m benchmarks.energy_coverage --runs 500 --faults 105 [--json]

For every gauge: the error of the net joules per inference against the phone's model (apart from the gain's error, which
is drawn for each run and no gauge can see), how often the 95 % intervals hold the truth (with the gain's uncertainty;
and, for comparisons on one device, without), and false alarms. `--answers`: the same of a token's energy, for
prompts and generation. For every fault: how often it is found. Same seeds, same
table; a run takes about 70 ms.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from benchmarks.command_line import run_command
from orchestrator.energy import block_energy, find_invalid
from orchestrator.model.power import Estimate
from orchestrator.model.record import InvalidCode
from tests.unit.energy.scenarios import (
    DISCHARGING,
    GAIN_UNCERTAINTY,
    GAUGES,
    POWERS,
    QUIET,
    answered,
    course_of,
    fault_of,
    profile_of,
    run_block,
)
from virtual_phones.simulation import FaultKind

FAULTS: dict[FaultKind, InvalidCode] = {
    "charging": InvalidCode.CHARGING,
    "freeze": InvalidCode.GAUGE_FROZEN,
    "throttle": InvalidCode.THROTTLED,
    "clock_cap": InvalidCode.CLOCK_CAP,
    "background": InvalidCode.BACKGROUND_LOAD,
    "sampling_gap": InvalidCode.SAMPLING_GAP,
}


@dataclass
class Accuracy:
    gauge: str
    runs: int = 0
    covered: int = 0
    """Truth inside the 95 % interval."""
    covered_within: int = 0
    """Truth inside the interval without the gain's uncertainty, the gain's error taken out."""
    false_alarms: int = 0
    sum_error: float = 0.0
    sum_square: float = 0.0
    largest_error: float = 0.0
    over_one_percent: int = 0

    def add(self, whole: Estimate, within: Estimate, truth_j: float, gain: float) -> None:
        """Count one energy, with its interval and the one without the gain's uncertainty."""
        error = within.value / (truth_j * gain) - 1
        self.runs += 1
        self.covered += whole.low <= truth_j <= whole.high
        self.covered_within += within.low <= truth_j * gain <= within.high
        self.sum_error += error
        self.sum_square += error * error
        self.largest_error = max(self.largest_error, abs(error))
        self.over_one_percent += abs(error) > 0.01


@dataclass
class Detection:
    fault: str
    runs: int = 0
    found: int = 0


def accuracy(gauge: str, runs: int) -> Accuracy:
    found = Accuracy(gauge)
    for seed in range(runs):
        run = run_block(gauge, seed)
        per, within = run.energy.per_inference_j, run.energy.within_per_inference_j
        assert per and within
        found.add(per, within, run.truth_j, run.gain)
        found.false_alarms += bool(find_invalid(run.record, DISCHARGING))
    return found


def tokens(gauge: str, runs: int) -> Accuracy:
    """The accuracy of a token's energy, both phases of answers together."""
    found = Accuracy(gauge)
    for seed in range(runs):
        gain = random.Random(f"gain {gauge} {seed}").gauss(1.0, GAIN_UNCERTAINTY)
        record, truth = answered(gauge, seed, seed, gain)
        energy = block_energy(record)
        for each in energy.phases if energy else ():
            found.add(each.per_token_j, each.within_per_token_j, truth[each.name], gain)
    return found


def quiet(gauge: str, runs: int) -> tuple[int, int]:
    """(runs, false alarms)."""
    alarms = sum(bool(find_invalid(run_block(gauge, seed).record, DISCHARGING)) for seed in range(runs))
    return runs, alarms


def detection(kind: FaultKind, runs: int) -> Detection:
    found = Detection(kind)
    for seed in range(5000, 5000 + runs):
        gauge = list(GAUGES)[seed % len(GAUGES)]
        course = course_of(profile_of(gauge), seed)
        run = run_block(gauge, seed, (fault_of(kind, course, seed),), course)
        found.runs += 1
        found.found += _is_found(kind, run.cut, find_invalid(run.record, DISCHARGING))
    return found


def _is_found(kind: FaultKind, cut: bool, reasons: tuple[object, ...]) -> bool:
    """A drop of the cable is found by the stream's end without a result, and costs the block nothing."""
    if kind == "cable_drop":
        return cut and not reasons
    return FAULTS[kind] in {getattr(reason, "code", None) for reason in reasons}


def rows(gauges: list[Accuracy]) -> Iterator[str]:
    yield f"{'gauge':<36} runs mean error     rms     max  >1 %  covered  within alarms"
    for a in gauges:
        rms = math.sqrt(a.sum_square / a.runs)
        yield (
            f"{a.gauge:<36}{a.runs:>5} {a.sum_error / a.runs:>+10.3%} {rms:>7.3%} {a.largest_error:>7.2%} "
            f"{a.over_one_percent:>5} {a.covered / a.runs:>8.1%} {a.covered_within / a.runs:>7.1%} {a.false_alarms:>6}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500, help="of each gauge")
    parser.add_argument("--answers", action="store_true", help="of language models, instead of inferences")
    parser.add_argument("--faults", type=int, default=105, help="runs of each fault")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    given = parser.parse_args()
    if given.answers:
        both = [tokens(gauge, given.runs) for gauge in (*GAUGES, *POWERS)]
        print(json.dumps(list(map(asdict, both)))) if given.json else print(*rows(both), sep="\n")
        return
    gauges = [accuracy(gauge, given.runs) for gauge in GAUGES]
    calm = {gauge: quiet(gauge, given.runs // 4) for gauge in QUIET}
    kinds: list[FaultKind] = [*FAULTS, "cable_drop"]
    found = [detection(kind, given.faults) for kind in kinds]
    if given.json:
        print(json.dumps({"gauges": list(map(asdict, gauges)), "quiet": calm, "faults": list(map(asdict, found))}))
        return
    print(*rows(gauges), sep="\n")
    runs = sum(a.runs for a in gauges)
    print(f"all: {runs} runs, covered {sum(a.covered for a in gauges) / runs:.1%}, ", end="")
    print(f"within {sum(a.covered_within for a in gauges) / runs:.1%}, alarms {sum(a.false_alarms for a in gauges)}")
    print(*(f"quiet: {name:<40}{count:>5} runs {alarms:>3} alarms" for name, (count, alarms) in calm.items()), sep="\n")
    print(
        *(f"fault: {d.fault:<40}{d.runs:>5} runs {d.found:>4} found ({d.found / d.runs:.1%})" for d in found), sep="\n"
    )


if __name__ == "__main__":
    run_command(main)
