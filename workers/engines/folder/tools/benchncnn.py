"""ncnn by its benchncnn: the mean of a block's loops, of a network whose weights are all zero.

Format: benchmark/benchncnn.cpp of ncnn, as of November 2026; what it prints goes to the standard error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.model.device import Api
from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment.engine_settings import Printed
from workers.engines.folder import Asked, FolderEngine, Told, Unread, WrongDevice, agreed, number, one_match

ROW = r" *\S+  min = +(?P<min>\d+\.\d\d)  max = +(?P<max>\d+\.\d\d)  avg = +(?P<avg>\d+\.\d\d)"
MEAN = Printed(regex=r"^ *\S+  min = .*  avg = +(?P<sample>[0-9.]+)$", unit="ms", stream="stderr")
GPU = re.compile(r"\[0 (?P<name>[^\]]+)\]  queueC=")


class BenchNcnn(FolderEngine):
    name = "benchncnn"
    apis = (Api.CPU, Api.VULKAN)
    programs = ("benchncnn",)
    formats = (".param",)
    own_doubts = (*FolderEngine.own_doubts, "zero_weights")

    def arguments(self, asked: Asked) -> list[str]:
        if not asked.threads:
            raise Unsupported("benchncnn wants a number of threads", remedy="give `matrix.threads`")
        gpu = "-1" if asked.backend is Api.CPU else "0"
        loops = [str(asked.samples), str(asked.threads), "0", gpu, "0"]
        return [*loops, f"param={asked.model}", f"shape={asked.axes['shape']}"]

    def model_facts(self, path: Path) -> Mapping[str, Any]:
        """The shapes of the inputs, as the file's lines of type Input have them. Raises Unsupported."""
        shapes = []
        for line in path.read_text(errors="replace").splitlines():
            if (words := line.split())[:1] == ["Input"]:
                sizes = dict(word.split("=", 1) for word in words if re.fullmatch(r"[012]=\d+", word))
                if not sizes:
                    raise Unsupported(
                        f"{path.name}: input {words[1]} has no shape there",
                        remedy="write `0=WIDTH 1=HEIGHT 2=CHANNELS` at the end of its line",
                    )
                shapes.append(f"[{','.join(sizes[each] for each in sorted(sizes))}]")
        if not shapes:
            raise Unsupported(f"{path.name} is no .param file of ncnn: it has no line of type Input")
        return {"shape": ",".join(shapes)}

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        row = one_match(ROW, [line for line in lines if line.stream == "stderr"], "the network")
        least, mean, most = (number(row[name], name) for name in ("min", "avg", "max"))
        if not least <= mean <= most:
            raise Unread(f"the mean {row['avg']} is not between {row['min']} and {row['max']}")
        gpu = -1 if asked.backend is Api.CPU else 0
        for what, value in (("loop_count", asked.samples), ("num_threads", asked.threads), ("gpu_device", gpu)):
            agreed(what, int(one_match(rf"{what} = (-?\d+)", lines, what)[1]), value)
        device = "CPU"
        if asked.backend is Api.VULKAN:
            found = next((match for line in lines if (match := GPU.match(line.text))), None)
            if found is None:
                raise WrongDevice(
                    "vulkan was asked for, and it names no GPU: it was built without Vulkan, or finds none"
                )
            device = found["name"]
        return Told(MEAN.samples(lines), device, threads=asked.threads, mean_of=asked.samples)


ENGINE = BenchNcnn
