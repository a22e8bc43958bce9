"""Random changes of what phones and meters print: a right figure, a doubt that names it, or a fitting refusal.

`python -m tests.fuzz.outputs 5000` draws by hand, and prints what became of them; some hundred are drawn in each run of
the tests. Each output is compared with the undisturbed one: a figure that moved and says nothing is `silent`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from orchestrator.exchange.power_traces import Recording, read_trace
from orchestrator.model.errors import TableError
from tests.unit.energy.test_readings import CHANGES, verdict
from workers.connection.adb import parse_devices
from workers.devices import dumpsys
from workers.devices.momentary import parse_nodes
from workers.power import ReadingLost
from workers.power.csv_file import CsvOptions, _Follower

RIGHT, TOLD, REFUSED, SILENT = "right", "told", "refused", "silent"
TOLERANCE = 0.005
WORDS = ("nan", "N/A", "[N/A]", "[Not Supported]", "", "null", "--", "inf", "-inf", "OVERLOAD", "Error: lost", "1,25")
ENDS = ("65535", "-2147483648", "2147483647", "4294967295", "-32768", "9223372036854775807", "1e9", "32767")
ROWS = ("# comment", "Error: device disconnected", "\0\0\0\0", "", ",,,", "\ufeff", "0x1F,0x2A", "total,12", "-,-")
Lines = list[str]


def _head_and_rows(draw: random.Random) -> tuple[str, Lines, str]:
    """A table of some 400 readings of 1.2 W, and what parts its cells."""
    watts = [1.2 + draw.gauss(0, 0.03) for _ in range(400)]
    readings = [(i, i / 10, w) for i, w in enumerate(watts)]
    match draw.randrange(5):
        case 0:
            return "time [s],power [W]", [f"{t:.1f},{w:.4f}" for _, t, w in readings], ","
        case 1:
            head = "Time (seconds),Voltage (Volts),Current (Milliamps)"
            return head, [f"{t:.1f},3.8{i % 9},{w / 3.84 * 1e3:.2f}" for i, t, w in readings], ","
        case 2:
            head = "timestamp sample_in_packet voltage_V current_A temp_C_ema"
            rows = [f"{1774531584 + t:.3f} {i % 4} 5.02325 {w / 5.02325:.5f} 28.2" for i, t, w in readings]
            return head, rows, " "
        case 3:
            rows = [f"2026/09/24 18:{int(t // 60):02d}:{t % 60:06.3f}, {100 * w:.2f} W" for _, t, w in readings]
            return "timestamp, power.draw [W]", rows, ","
    return "time [ms];power [mW]", [f"{t * 1e3:.0f};{w * 1e3:.1f}".replace(".", ",") for _, t, w in readings], ";"


def _cell(rows: Lines, mark: str, draw: random.Random, value: str) -> None:
    """Another text in the last cell of a row, which is power, current or the like."""
    place = draw.randrange(len(rows))
    cells = rows[place].split(mark)
    cells[draw.randrange(len(cells) > 1, len(cells))] = value
    rows[place] = mark.join(cells)


def _disturbed(head: str, rows: Lines, mark: str, draw: random.Random) -> str:
    lines, end = [*rows], "\n"
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        match draw.randrange(10):
            case 0:
                _cell(lines, mark, draw, draw.choice(WORDS))
            case 1:
                _cell(lines, mark, draw, draw.choice(ENDS))
            case 2:
                lines.insert(draw.randint(0, len(lines)), draw.choice(ROWS))
            case 3:
                lines.append(draw.choice(ROWS))
            case 4:
                lines[-1] = lines[-1][: draw.randint(0, len(lines[-1]))]
            case 5:
                lines.insert(draw.randint(1, len(lines)), head)
            case 6:
                del lines[draw.randrange(len(lines))]
            case 7:
                place = draw.randrange(len(lines) - 1)
                lines[place : place + 2] = reversed(lines[place : place + 2])
            case 8:
                end = "\r\n"
            case _:
                place = draw.randrange(len(lines))
                lines.insert(place, lines[place])
    return end.join([head, *lines]) + draw.choice(("", end, end + "\0" * 40))


def _read(text: str) -> Recording:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.csv")
        path.write_bytes(text.encode())
        (found,) = read_trace(path)
        return found


def trace(draw: random.Random) -> str:
    """A file that was damaged."""
    head, rows, mark = _head_and_rows(draw)
    whole = _read("\n".join([head, *rows]) + "\n")
    try:
        found = _read(_disturbed(head, rows, mark, draw))
    except TableError as e:
        return REFUSED if e.remedy else SILENT
    moved = abs(found.facts.plain_w - whole.facts.plain_w) > TOLERANCE * whole.facts.plain_w
    more = {doubt.code for doubt in found.doubts} - {doubt.code for doubt in whole.doubts}
    return (TOLD if more else SILENT) if moved else (TOLD if more else RIGHT)


def several(draw: random.Random) -> str:
    """Readings of two to five devices in one file, on levels of their own."""
    levels = [0.5 + each + draw.uniform(0.1, 0.5) for each in range(draw.randint(2, 5))]
    draw.shuffle(levels)
    gpu, count = draw.random() < 0.5, draw.randint(10, 200) * len(levels)
    watts = [(100 if gpu else 1) * (levels[i % len(levels)] + draw.gauss(0, 0.01)) for i in range(count)]
    rows = [
        f"2026/09/24 18:{i // 2400:02d}:{i % 2400 * 0.025:06.3f}, {w:.2f} W" if gpu else f"{i * 0.025:.3f},{w:.4f}"
        for i, w in enumerate(watts)
    ]
    head = "timestamp, power.draw [W]" if gpu else "time [s],power [W]"
    try:
        found = _read("\n".join([head, *rows]))
    except TableError as e:
        return REFUSED if e.remedy else SILENT
    return TOLD if any(doubt.code == "several_in_one" for doubt in found.doubts) else SILENT


def live(draw: random.Random) -> str:
    """A line of a meter's file that grows."""
    rows = [f"{i / 10:.1f},{1.2 + draw.gauss(0, 0.03):.4f}" for i in range(50)]
    lines = [*rows]
    _cell(lines, ",", draw, draw.choice((*WORDS, *ROWS)))
    follower = _Follower(CsvOptions(path=Path("meter.csv"), time="1", power="2"))
    follower._columns, follower._width = {"time": 0, "power": 1}, 2
    try:
        batch = follower._batch([(i, line.split(",")) for i, line in enumerate(lines) if line], 0)
    except ReadingLost as e:
        return REFUSED if "meter.csv, line" in str(e) and e.remedy else SILENT
    fits = batch is not None and len(batch.own_s) == len(rows) and abs(batch.power_w.mean() - 1.2) < 0.03
    return RIGHT if fits else SILENT


def thermal(draw: random.Random) -> str:
    """Odd rows among those of the HAL: the others are read all the same."""
    rows = [f"\tTemperature{{mValue={30 + i}.5, mType={i % 4}, mName=s{i}, mStatus=0}}" for i in range(6)]
    lines = [*rows]
    for _ in range(draw.randint(1, 4)):
        value = draw.choice((*WORDS[:2], "0.0", "-40.0", "125.0", "2800.0", *ENDS))
        odd = f"\tTemperature{{mValue={value}, mType=3, mName=odd, mStatus=0}}"
        lines.insert(draw.randint(0, len(lines)), draw.choice((*ROWS, odd, "\tTemperature{mVal")))
    end = "Current cooling devices from HAL:"
    whole, found = (
        dumpsys.parse_thermal("\n".join(["Thermal Status: 0", "Current temperatures from HAL:", *each, end]))
        for each in (rows, lines)
    )
    return RIGHT if found == whole and len(whole.temperatures) == len(rows) else SILENT


def nodes(draw: random.Random) -> str:
    """A node that says what it cannot: it is not told, and the others are."""
    folder = f"/sys/class/power_supply/{draw.choice(('battery', 'Battery', 'main-batt', 'bq27'))}"
    told = {"current_now": "-412000", "voltage_now": draw.choice(("3994000", "3994")), "cycle_count": "217"}
    name = draw.choice(list(told))
    odd = draw.choice(("-2147483648", "2147483647", "65535", "4294967295", "<unsupported>", "", "nan"))
    text = "".join(f"{folder}/{key}:{value}\n" for key, value in ({"type": "Battery"} | told | {name: odd}).items())
    found = parse_nodes(text, 0.0)
    volts = None if found.voltage_v is None else round(found.voltage_v, 6)
    values = {"current_now": found.current_raw, "voltage_now": volts, "cycle_count": found.battery_cycles}
    wanted = {"current_now": -412000, "voltage_now": 3.994, "cycle_count": 217}
    return RIGHT if values == wanted | {name: None} else SILENT


def listing(draw: random.Random) -> str:
    """Odd rows among those of `devices -l`: no other row is lost by them."""
    names = ("R58M42", "192.168.1.2:5555", "adb-1234-xYz (2)._adb-tls-connect._tcp", "emulator-5554")
    rows = [f"{name:22s} {draw.choice(('device', 'offline', 'authorizing'))} transport_id:7" for name in names]
    lines = [*rows]
    for _ in range(draw.randint(1, 3)):
        odd = draw.choice((*ROWS, "* daemon started *", "List of devices attached"))
        lines.insert(draw.randint(0, len(lines)), odd)
    whole, found = parse_devices("\n".join(rows)), parse_devices("\n".join(lines))
    return RIGHT if [row for row in found if row in whole] == whole and len(whole) == len(rows) else SILENT


def block(draw: random.Random) -> str:
    """A gauge's readings in a block."""
    found = verdict(draw.choice(list(CHANGES)), draw)
    return REFUSED if found == "invalid" else found


KINDS: dict[str, tuple[Callable[[random.Random], str], int]] = {
    "trace": (trace, 30),
    "several": (several, 10),
    "live": (live, 15),
    "thermal": (thermal, 15),
    "nodes": (nodes, 10),
    "listing": (listing, 10),
    "block": (block, 10),
}
"""Name -> what draws one, and how many of a hundred."""


def main() -> int:
    total, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**31)
    silent = 0
    for name, (kind, share) in KINDS.items():
        found = Counter[str]()
        for number in range(total * share // 100):
            case = f"{name} {seed} {number}"
            found[what := kind(random.Random(case))] += 1
            if what == SILENT:
                print(f"silent: {case!r}", flush=True)
        silent += found[SILENT]
        print(
            f"{name}: {sum(found.values())} draws: {', '.join(f'{count} {what}' for what, count in found.items())}",
            flush=True,
        )
    print(f"seed {seed}: {silent} silent")
    return int(silent > 0)


if __name__ == "__main__":
    sys.exit(main())
