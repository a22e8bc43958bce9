"""The time and memory of `farm energy` over traces of a gigabyte.

    python -m benchmarks.farm.long_traces --megabytes 1000 [-o raw.json]

Writes a trace of each form, as long as is asked for, lets `farm energy` read it as load (its baseline is a second one
of a few readings) in a process of its own, and compares the mean with the one that was put in.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.command_line import run_command
from virtual_phones.commands.perfetto import varint

ROWS = 200_000
PERIOD_US = 200
FORMS: dict[str, tuple[str, Callable[[float, float, float], str]]] = {
    "time and power": ("time [ms],power [mW]", lambda us, a, v: f"{us / 1e3:.1f},{a * v * 1e3:.4f}"),
    "current and voltage": (
        "time_us,current [mA],voltage [V]", lambda us, a, v: f"{us:.0f},{a * 1e3:.5f},{v:.5f}"
    ),
    "decimal commas": (
        "time [s];power [mW]", lambda us, a, v: f"{us / 1e6:.4f};{a * v * 1e3:.4f}".replace(".", ",")
    ),
    "PyMonsoon with NumPy's names": (
        "Time(s),Main(mA),Main Voltage(V),",
        lambda us, a, v: f"np.float64({us / 1e6:.4f}),np.float64({a * 1e3:.4f}),np.float64({v:.4f}),",
    ),
}  # fmt: skip
PACKETS = {"perfetto, packets of 8 kB": 8000, "perfetto, packets of 60 bytes": 60}
"""Bytes of the packets of other data sources between a battery's."""
BATTERY_NS, BYTES_A_READING = 100_000_000, 28_000


@dataclass(frozen=True)
class Found:
    """One form."""

    form: str
    megabytes: float
    readings: int
    seconds: float
    """The time from the command to its answer, by the clock."""
    processor_s: float
    peak_mb: float
    error: float
    """The error of the plain mean, as a share of what was put in."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args(argv)
    found = []
    for form in measured(arguments.megabytes * 1_000_000):
        print(
            f"{form.form:30} {form.megabytes:6.0f} MB {form.readings / 1e6:5.1f} M readings {form.seconds:6.1f} s "
            f"{form.processor_s:6.1f} s of the processor {form.peak_mb:5.0f} MB of memory, mean off by {form.error:.1e}"
        )
        found.append(asdict(form))
    if arguments.output is not None:
        arguments.output.write_text(json.dumps({"cores": os.cpu_count(), "forms": found}, indent=1) + "\n")


def measured(size: int) -> Iterator[Found]:
    for form in (*FORMS, *PACKETS):
        with tempfile.TemporaryDirectory() as folder:
            path, rest = Path(folder) / "long", Path(folder) / "rest"
            written = write if form in FORMS else write_packets
            readings, mean_w = written(path, form, size)
            written(rest, form, size // 1000)
            before = os.times()
            began = time.monotonic()
            out, peak_mb = _run("--baseline", str(rest), "--load", str(path), "--json")
            seconds, after = time.monotonic() - began, os.times()
            busy = after.children_user + after.children_system - before.children_user - before.children_system
            got = json.loads(out)
            assert got["traces"][1]["readings"] == readings, (form, got["traces"], readings)
            yield Found(
                form=form,
                megabytes=path.stat().st_size / 1e6,
                readings=readings,
                seconds=seconds,
                processor_s=busy,
                peak_mb=peak_mb,
                error=abs(got["load_power_w"] / mean_w - 1),
            )


def write(path: Path, form: str, size: int) -> tuple[int, float]:
    """The same rows of random current and voltage again and again, each at its own time; readings and mean power."""
    header, row = FORMS[form]
    generator = np.random.default_rng()
    amperes, volts = generator.normal(0.5, 0.1, ROWS), generator.normal(3.9, 0.02, ROWS)
    total = readings = 0
    sum_w = 0.0
    with path.open("w") as file:
        total += file.write(header + "\n")
        while total < size:
            lines = []
            for a, v in zip(amperes.tolist(), volts.tolist(), strict=True):
                lines.append(row(readings * PERIOD_US, a, v))
                readings, sum_w, total = readings + 1, sum_w + a * v, total + len(lines[-1]) + 1
                if total >= size:
                    break
            file.write("\n".join(lines) + "\n")
    return readings, sum_w / readings


def write_packets(path: Path, form: str, size: int) -> tuple[int, float]:
    """A perfetto trace of an hour or less: a battery's counters ten times a second, and of other sources so many
    packets in between that each reading has its share of bytes."""
    generator, readings = np.random.default_rng(), max(10, size // BYTES_A_READING)
    other = [_field(1, _field(1, generator.bytes(PACKETS[form]))) for _ in range(50)]
    between = b"".join(other[n % 50] for n in range(BYTES_A_READING // PACKETS[form]))
    amperes, volts = generator.normal(0.5, 0.1, readings), generator.normal(3.9, 0.02, readings)
    charge, sum_w = 4_000_000.0, 0.0
    with path.open("wb") as file:
        for n, (a, v) in enumerate(zip(amperes.tolist(), volts.tolist(), strict=True)):
            current, volt, charge = -round(a * 1e6), round(v * 1e6), charge - a * 27
            counters = _field(1, round(charge)) + _field(3, current) + _field(7, volt)
            file.write(_field(1, _field(8, n * BATTERY_NS) + _field(38, counters)) + between)
            sum_w -= current * volt * 1e-12
    return readings, sum_w / readings


def _field(number: int, value: int | bytes) -> bytes:
    """Return a field as protobuf writes it."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % (1 << 64))
    return varint(number << 3 | 2) + varint(len(value)) + value


_MEASURE = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "farm.cli", "energy", *sys.argv[1:]], stdout=subprocess.PIPE)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
"""


def _run(*arguments: str) -> tuple[str, float]:
    """Return what the command prints, and the most memory that it had."""
    done = subprocess.run([sys.executable, "-c", _MEASURE, *arguments], capture_output=True, text=True, check=True)
    return done.stdout, int(done.stderr.split()[-1]) / 1e3


if __name__ == "__main__":
    run_command(main)
