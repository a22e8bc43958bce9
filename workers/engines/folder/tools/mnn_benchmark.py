"""MNN by its benchmark.out: the mean of a block's loops.

Format: benchmark/benchmark.cpp of MNN, as of November 2026.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.model.device import Api, Precision
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import Printed
from workers.engines.folder import Asked, FolderEngine, Told, Unread, WrongDevice, agreed, number, one_match

MS = r"\d+\.\d{3}"
ROW = rf"\[ - \] \S+ +max = +(?P<max>{MS}) ms  min = +(?P<min>{MS}) ms  avg = +(?P<avg>{MS}) ms"
MEAN = Printed(regex=r"^\[ - \] .*avg = +(?P<sample>[0-9.]+) ms$", unit="ms", stream="stdout")
TYPES = {Api.CPU: (0, "CPU"), Api.OPENCL: (3, "OpenCL"), Api.VULKAN: (7, "Vulkan")}
PRECISIONS = {Precision.FP32: 1, Precision.FP16: 2}
"""`High` and `Low` of MNN."""
ITS_THREADS = 4


class MnnBenchmark(FolderEngine):
    name = "mnn_benchmark"
    apis = tuple(Api)
    precisions = tuple(PRECISIONS)
    programs = ("benchmark.out", "benchmark.mnn")
    formats = (".mnn",)
    takes_folder = True

    def arguments(self, asked: Asked) -> list[str]:
        counts = (asked.samples, asked.warmup, TYPES[asked.backend][0], asked.threads or ITS_THREADS)
        return [asked.model, *map(str, counts), str(PRECISIONS[asked.precision])]

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        row = one_match(ROW, lines, "the network")
        least, mean, most = (number(row[name], name) for name in ("min", "avg", "max"))
        if not least <= mean <= most:
            raise Unread(f"the mean {row['avg']} is not between {row['min']} and {row['max']}")
        if fallen := next((line.text for line in lines if "instead" in line.text and "backend" in line.text), ""):
            raise WrongDevice(f"{asked.backend} was asked for: {fallen[:200]}")
        head = one_match(r"Forward type: (\S+) thread=(\d+) precision=(\d+) .*", lines, "the settings")
        name, threads = TYPES[asked.backend][1], asked.threads or ITS_THREADS
        told = (head[1], int(head[2]), int(head[3]))
        agreed("type, threads, precision", told, (name, threads, PRECISIONS[asked.precision]))
        loops = one_match(r"-+> Benchmarking\.\.\. loop = (\d+), warmup = (\d+)", lines, "the loops")
        agreed("loop, warmup", (int(loops[1]), int(loops[2])), (asked.samples, asked.warmup))
        return Told(MEAN.samples(lines), name, threads=threads, mean_of=asked.samples)


ENGINE = MnnBenchmark
