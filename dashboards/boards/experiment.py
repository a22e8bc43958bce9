"""Results: latency, throughput, set-up, memory, and how far they can be trusted."""

from __future__ import annotations

from . import limits
from .board import Board
from .panel import Panel
from .panels import RESULT, of_results


def _training(title: str, what: str, family: str, unit: str) -> Panel:
    of_source = 'on (serial) group_left (source) farm_device_info{source="$source", serial=~"$serial"}'
    query = {f"farm_training_{family} * {of_source}": "{{serial}} {{stage}}"}
    return Panel("lines", title, f"{what}, of each training under way.", query, unit=unit, least=0)


def _wide(title: str, description: str, query: str, unit: str, legend: str = RESULT) -> Panel:
    return Panel("lines", title, description, {query: legend}, unit=unit, width=12, least=0)


BOARD = Board(
    uid="pocketfarm-experiment",
    title="Experiment",
    description="The newest figures of each result of each experiment, with verdicts and warnings.",
    variables=("source", "serial", "network", "experiment"),
    rows={
        "Results: $network on $source devices": (
            _wide(
                "Latency, median", "Latest figures of each result: median over blocks of their medians.",
                of_results("latency_seconds", stat="median"), "s",
            ),
            _wide(
                "Latency, 90th percentile", "Of all timed samples of the latest figures.",
                of_results("latency_seconds", stat="p90"), "s",
            ),
            _wide(
                "Throughput", "Frames per second of streams (`sampling.frames`), which have no latency.",
                of_results("throughput_frames_per_second", stat="median"), "suffix: frames/s",
            ),
            _wide(
                "Set-up", "From a fresh process to its first inference, by state of caches: median over blocks.",
                of_results("setup_seconds", stat="median"), "s", RESULT + " {{state}}",
            ),
            _wide(
                "Memory on the device", "The agent's own allocations, at their peak.",
                of_results("memory_bytes", kind="device", stat="median"), "bytes",
            ),
            Panel(
                "table", "Age of figures", "A result that is not measured any more stays with its last figures.",
                {"time() - " + of_results("timestamp_seconds"): "age"}, width=12, unit="s",
            ),
            Panel(
                "table", "Every quantity", "Latest figures in base units, of each quantity that is declared.",
                {of_results(stat="median"): "median"}, width=24, order=("quantity", "serial"),
            ),
            Panel(
                "lines", "Latest good result",
                "Its age, of each of the newest experiments. The line is that of the alert NightlyWithoutResults.",
                {"time() - farm_experiment_last_result_timestamp_seconds": "{{experiment}}"},
                unit="s", width=12, least=0, limits=limits.above(limits.RESULT_AGE_S),
            ),
            _wide(
                "Latency over devices", "Median and 90th percentile, over devices, of their medians.",
                'network:farm_results_latency_seconds:quantile{source="$source", network=~"$network", '
                'experiment=~"$experiment"}', "s",
                "{{experiment}} {{network}} {{backend}} {{precision}} {{options}} quantile {{quantile}}",
            ),
        ),
        "Training on $source devices": (
            _training("Loss", "Mean loss of the latest epoch", "loss", "short"),
            _training("Error", "Share of wrong answers in the latest epoch", "error_ratio", "percentunit"),
            _training("Epochs", "Epochs that are done of the stage", "epochs", "short"),
        ),
        "Trust: $network on $source devices": (
            Panel(
                "table", "Verdicts and warnings",
                "What the blocks say of their stability, and how many kinds of warning there are. `farm"
                " results` words them, with what to do.",
                {of_results("verdict") + " == 1": "", of_results("doubts"): "warnings"},
                width=16, hidden=("Time", "instance", "job", "__name__", "stat", "source"),
            ),
            Panel(
                "bars", "Results by warning",
                "Number of results whose latest figures have each warning, for all sources.",
                {"farm_results_doubted > 0": "{{doubt}}"}, unit="short", least=0,
            ),
        ),
    },
)  # fmt: skip
