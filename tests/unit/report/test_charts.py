"""Charts of few and many results with short and long names: nothing is cut or covered, and colours mean one thing."""

from __future__ import annotations

import colorsys
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import combinations
from random import Random

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from orchestrator.analysis.statistics.setup import STEPS
from orchestrator.model.device import Api, Precision
from orchestrator.model.event import Setup
from orchestrator.model.experiment import Workload
from orchestrator.model.job import Cell, ForeignCell
from orchestrator.model.record import InvalidCode, Invalidity, Outcome, Record
from orchestrator.report import charts, traces
from orchestrator.report.charts.over_time import NARROW_PX, WIDTH_PX, time_axis
from orchestrator.report.colours import BACKENDS, SETUP, Colours, looks
from orchestrator.report.drawing import Chart, style
from tests.unit.agreement import made as predicted

from . import everything
from .records import Whole, built, cell, experiment, powered, record

SERIAL = "RZCX91XKPVJ-rack-7-shelf-B-port-12.usb-hub-3-of-the-second-lab.example:5555"
VALUE = "a blocked product with a name that nobody can take in at a glance"
LAYER = "inception_4e/branch_with_a_long_name/expand3x3_and_something_more/reduced"
FEW = 1
"""Pixels by which an outline may reach over an edge."""


def of(cells: Sequence[Cell], serials: Sequence[str], blocks: int = 3, model: str = "SM-G930F") -> Whole:
    """Blocks with rests and power, every set-up step, and layers."""
    records = [
        _block(one, serial, block, model) for block in range(blocks) for serial in serials for one in cells
    ]  # fmt: skip
    known = {each.cell_id: each for each in cells}
    return built("e", experiment(), cells=known, records=records, outcomes={}, now=1e9)


def _block(one: Cell, serial: str, block: int, model: str) -> Record:
    slow = 1 + 0.2 * (hash_of(one) % 7)
    timed = [slow * (5 + math.sin(i + block)) for i in range(8)]
    steps = tuple(
        Setup(seq=i, t_ns=0, step=step, start_ns=0, duration_ns=(i + 1) * 10**7)  # type: ignore[arg-type]
        for i, step in enumerate(name for events in STEPS.values() for name in events)
    )
    plain = record(one, timed, block=block, serial=serial, model=model, token=block + 1)
    layers = tuple(plain.layers[0].model_copy(update={"index": i, "layer": f"{LAYER}_{i}"}) for i in range(15))
    changed = {"setup": steps, "layers": layers, "layer_memory": everything._layers()}
    found = powered(plain, 0.9, 2.4, noise=[math.sin(i) / 9 for i in range(301)]).model_copy(update=changed)
    if block == 2:
        told = tuple(Invalidity(code=code, detail="x") for code in list(InvalidCode)[:6])
        found = found.model_copy(update={"outcome": Outcome.INVALID, "invalid": told})
    return found


def hash_of(one: Cell) -> int:
    return int(one.cell_id, 16)


def swept(api: Api, count: int, value: str = "8x") -> list[Cell]:
    return [cell(api).model_copy(update={"options": {"product": f"{value}{n}", "tile": n % 2}}) for n in range(count)]


def foreign() -> Whole:
    """Measured by somebody else, with backends of theirs."""
    cells = [
        ForeignCell(foreign=True, workload=Workload(network="lenet"), backend=backend, precision="int8")
        for backend in ("tflite", "ncnn", "mnn", "opencl", "cpu")
    ]
    plain = of([cell()], ["theirs"]).records
    records = [
        each.model_copy(update={"cell_id": one.cell_id, "job_id": f"{one.cell_id}{each.block}", "runs_on": None})
        for one in cells for each in plain
    ]  # fmt: skip
    known = {each.cell_id: each for each in cells}
    return built("e", experiment(), cells=known, records=records, outcomes={}, now=1e9)


def engines() -> list[Cell]:
    """Ours on two backends beside three others, one of them on two."""
    by = {"onnxruntime": (Api.CPU,), "ncnn": (Api.CPU, Api.VULKAN), "mnn": (Api.CPU,)}
    others = [cell(api).model_copy(update={"options": {"engine": name}}) for name, apis in by.items() for api in apis]
    return [cell(Api.OPENCL), cell(Api.CPU), *others]


BOTH = [cell(api, precision) for api in Api for precision in (Precision.FP32, Precision.FP16)]
MADE = {
    "one cell": partial(of, [cell()], ["A"]),
    "several engines": partial(of, engines(), ["A"], 2),
    "every backend": partial(of, BOTH, ["A", "B"], 2),
    "many cells": partial(of, [*swept(Api.OPENCL, 10), *swept(Api.CPU, 5)], ["A"]),
    "long names": partial(of, [*swept(Api.OPENCL, 4, VALUE), *swept(Api.VULKAN, 2, VALUE)], [SERIAL], 3, "Phone " * 9),
    "everything": partial(everything.content, blocks=3),
    "sustained": partial(everything.content, blocks=1, mode="sustained"),
    "foreign": foreign,
}


@cache
def content_of(name: str) -> Whole:
    return MADE[name]()


@cache
def drawn(name: str) -> tuple[Chart, ...]:
    """Every chart that the page of this content has, once drawn."""
    c = content_of(name)
    colours = Colours.of(c.summaries)
    singles = [
        chart for i, each in enumerate(c.summaries[:1])
        for chart in (charts.layers(each, f"l{i}", colours), charts.memory(each, f"m{i}"))
    ]  # fmt: skip
    found = [
        charts.latency(c.summaries, c.blocks), *charts.distribution(c.summaries, c.blocks),
        *charts.drift(c.summaries, c.records), *charts.throttling(c.summaries),
        *charts.throttling(c.summaries, NARROW_PX), charts.setup(c.summaries),
        *charts.power(c.summaries, c.records), *charts.energy(c.summaries), *singles,
    ]  # fmt: skip
    shown = tuple(chart for chart in found if chart is not None)
    if name == "sustained":  # the rest is as in the others
        shown = tuple(chart for chart in shown if chart.name.startswith(("throttling", "drift0")))
    for chart in shown:
        draw(chart.figure)
    return shown


def draw(figure: Figure) -> None:
    """Place all of it; nothing here looks at a pixel."""
    with style():
        figure.draw_without_rendering()


def headings(figure: Figure) -> list[Bbox]:
    title = figure._suptitle  # type: ignore[attr-defined]
    return [each.get_window_extent() for each in (*figure.legends, *([title] if title else []))]


def plots(figure: Figure) -> list[Bbox]:
    """The boxes of what is drawn inside and around the axes: curves, marks, words, names of ticks and axes."""
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    return [box for box in boxes if box is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_nothing_is_cut_and_no_legend_covers_anything(name: str) -> None:
    for chart in drawn(name):
        assert_sound(chart.figure, chart.name)


def assert_sound(figure: Figure, name: str) -> None:
    whole = figure.bbox.padded(FEW)
    for box in (*headings(figure), *plots(figure)):
        assert whole.x0 <= box.x0 and box.x1 <= whole.x1, f"{name}: cut at a side"
        assert whole.y0 <= box.y0 and box.y1 <= whole.y1, f"{name}: cut above or below"
    for above in headings(figure):
        for box in plots(figure):
            assert Bbox.intersection(above, box.padded(-FEW)) is None, f"{name}: covered by its legend"
    assert not [legend for axes in figure.axes if (legend := axes.get_legend())], f"{name}: a legend among the curves"
    for axes in figure.axes:
        assert axes.bbox.width > 0.3 * figure.bbox.width and axes.bbox.height > 15, f"{name}: no room for the curves"


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_entries_of_a_legend_are_told_apart(name: str) -> None:
    for chart in drawn(name):
        for legend in chart.figure.legends:
            signs = [sign(handle) for handle in legend.legend_handles]
            assert len(set(signs)) == len(signs), f"{chart.name}: {signs}"


def sign(handle: object) -> tuple[object, ...]:
    if isinstance(handle, Line2D):
        dashes = str(handle._unscaled_dash_pattern)  # type: ignore[attr-defined]
        face = str(handle.get_markerfacecolor())
        return to_hex(handle.get_color()), dashes, handle.get_linewidth(), str(handle.get_marker()), face
    assert isinstance(handle, Rectangle)
    return to_hex(handle.get_facecolor(), keep_alpha=True), handle.get_hatch()


def test_colours_that_stand_together_are_distinct() -> None:
    many = Colours.of(content_of("foreign").summaries).known
    assert {"tflite", "ncnn", "mnn", *BACKENDS} <= many.keys()
    for colours in (SETUP, many):
        near = [pair for pair in combinations(colours, 2) if distance(colours[pair[0]], colours[pair[1]]) < 20]
        assert near == []


def distance(one: str, other: str) -> float:
    """CIE76: about 2 is just seen, from 10 on colours are different at a glance."""
    return float(np.linalg.norm(np.subtract(lab(one), lab(other))))


def lab(colour: str) -> tuple[float, float, float]:
    """CIELAB of an sRGB colour, white D65."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    ratios = [sum(a * b for a, b in zip(row, linear, strict=True)) / sum(row) for row in to_xyz]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in ratios)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize(
    "name", ["several engines", "every backend", "many cells", "everything", "sustained", "foreign"]
)
def test_a_backend_or_an_engine_has_one_colour_in_every_chart(name: str) -> None:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    summaries = content_of(name).summaries
    colours = Colours.of(summaries)
    assert colours.by == ("engine" if name == "several engines" else "backend")
    backends = {colours.name(summary) for summary in summaries}
    for chart in drawn(name):
        for backend, colour in named_colours(chart, backends):
            found[backend][colour].add(chart.name)
    assert found.keys() == backends
    assert {backend: len(colours) for backend, colours in found.items()} == dict.fromkeys(backends, 1), dict(found)
    assert len({next(iter(colours)) for colours in found.values()}) == len(backends)
    kinds = {re.sub(r"\d+$", "", name) for colours in found.values() for names in colours.values() for name in names}
    assert kinds >= ({"throttling", "drift"} if name == "sustained" else {"latency", "distribution", "drift"})


def named_colours(chart: Chart, backends: set[str]) -> Iterator[tuple[str, str]]:
    """Backend, or engine, and colour of each entry of a legend that names one; of a curve the colour of its hue."""
    for legend in chart.figure.legends:
        yield from (found for found in _entries(legend, backends))


def _entries(legend: Legend, backends: set[str]) -> Iterator[tuple[str, str]]:
    for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
        words = text.get_text().replace("\n", " ").removeprefix("lenet ").removeprefix("squeezenet_v1_0 ")
        engine = re.search(r"engine=(\w+)", words)
        backend = engine[1] if engine and engine[1] in backends else words.split(" ")[0]
        if backend in backends and isinstance(handle, Line2D):
            yield backend, base_of(to_hex(handle.get_color()))


def base_of(colour: str) -> str:
    """The colour of the palette with the same hue and saturation, whatever its lightness."""
    hue, _, saturation = colorsys.rgb_to_hls(*to_rgb(colour))
    for known in (*BACKENDS.values(), *Colours.of(content_of("foreign").summaries).known.values()):
        base, _, full = colorsys.rgb_to_hls(*to_rgb(known))
        if abs(base - hue) < 0.01 and abs(full - saturation) < 0.03:
            return known
    return colour


def test_up_to_twelve_curves_of_a_backend_differ() -> None:
    found = looks([("opencl", str(n)) for n in range(12)] + [("cpu", "0")], BACKENDS)
    assert len(set(found.values())) == 13 and found["cpu", "0"].color == BACKENDS["cpu"]
    assert {base_of(found["opencl", str(n)].color) for n in range(12)} == {BACKENDS["opencl"]}


def test_margins_and_traces_are_sound_too() -> None:
    """A chart of predictions, and the picture of `farm energy`."""
    (chart,) = charts.margins(predicted.content().agreements)
    label, t_s = "a-recording-with-a-long-name-of-its-phone-and-day", np.arange(50.0)
    curves = [traces.Curve(f"{label}-{n}.csv", t_s, 2 + np.sin(t_s + n)) for n in range(6)]
    figure = traces.figure_of({"baseline": curves[:3], "load": curves[3:]})
    for each in (chart.figure, figure):
        draw(each)
        assert_sound(each, "margins or traces")


def test_the_climb_of_a_run_is_seen_and_its_times_are_plain(seed: int) -> None:
    """Runs of minutes or hours that get slower by 4 to 30 %: the blocks climb over a good part of the panel."""
    random, one = Random(seed), cell(Api.OPENCL)
    for _ in range(6):
        climb, pause_s, blocks = random.uniform(0.04, 0.3), random.choice((5.0, 150.0, 900.0)), random.randrange(4, 15)
        records = []
        for block in range(blocks):
            slow = 10 * (1 + climb * block / (blocks - 1))
            found = record(one, [slow * random.lognormvariate(0, 0.005) for _ in range(20)], block=block)
            began = round(block * pause_s * 1e9)
            samples = tuple(each.model_copy(update={"start_ns": each.start_ns + began}) for each in found.samples)
            records.append(found.model_copy(update={"samples": samples, "started_at": 1e6 + block * pause_s}))
        whole = built("e", experiment(), cells={one.cell_id: one}, records=records, outcomes={}, now=1e9)
        (chart,) = charts.drift(whole.summaries, whole.records)
        draw(chart.figure)
        (axes,) = chart.figure.axes
        lines = [line for line in axes.get_lines() if line.get_linestyle() == "-" and len(line.get_xdata()) > 2]
        levels = [float(np.median(np.asarray(line.get_ydata()))) for line in lines]
        low, high = axes.get_ylim()
        assert len(levels) == blocks and (levels[-1] - levels[0]) / (high - low) > 0.055
        assert all(re.fullmatch(r"\d+(\.\d+)?", label.get_text()) for label in axes.get_xticklabels())
        assert_sound(chart.figure, f"a climb of {climb:.0%}")


@pytest.mark.parametrize("width_px", [NARROW_PX, WIDTH_PX])
def test_every_span_of_time_has_marks_below_it(width_px: float, seed: int) -> None:
    """Seconds to years, most often two to three of a unit, for which three to five times have no distance that fits:
    Matplotlib would warn."""
    random = Random(seed)
    for unit_s in (1, 60, 3600, 86_400, 30 * 86_400, 365 * 86_400):
        for count in (random.uniform(2, 3), *(math.exp(random.uniform(0, math.log(60))) for _ in range(5))):
            axes, start = Figure().subplots(), random.uniform(1.6e9, 1.9e9)
            time_axis(axes, (), (start, start + count * unit_s), width_px)
            assert 2 <= len(axes.get_xticks()) <= 9, (unit_s, count)


def test_blocks_of_power_have_times_below_them(seed: int) -> None:
    """Blocks of a fifth of a second to a quarter of an hour: at least two marks below each."""
    random, one = Random(seed), cell(Api.OPENCL)
    for _ in range(5):
        each_s, count = math.exp(random.uniform(math.log(0.2), math.log(300))), random.randrange(1, 4)
        records = [powered(record(one, [5.0] * 6, block=n, token=n + 1), 1.0, 3.0, each_s=each_s) for n in range(count)]
        whole = built("e", experiment(), cells={one.cell_id: one}, records=records, outcomes={}, now=1e9)
        (chart,) = charts.power(whole.summaries, whole.records)
        words = [label.get_text() for label in chart.figure.axes[0].get_xticklabels()]
        assert words.count("0") == count and len(words) >= 2 * count, (each_s, words)
