"""ONNX Runtime by its onnxruntime_perf_test: raw samples, which it writes as its result file.

Format: onnxruntime/test/perftest (performance_runner.h and .cc, command_args_parser.cc).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestrator.model.device import Api
from orchestrator.model.errors import Unsupported
from orchestrator.model.event import Line
from orchestrator.model.experiment import Workload
from orchestrator.model.experiment.engine_settings import Printed
from workers.engines.folder import Asked, FolderEngine, Told, Unread, agreed, delegates, number, one_match

SAMPLES = Printed(regex=r"^[^,]*,(?P<sample>[0-9.e+-]+),\d+,-?\d+,\d+$", unit="s", stream="stdout")
SEED = 1
"""The seed of its inputs: without one it times whatever lies in its memory."""


class OnnxRuntimePerfTest(FolderEngine):
    name = "onnxruntime_perf_test"
    takes = ("model", "onnx")
    apis = (Api.CPU,)
    programs = ("onnxruntime_perf_test",)
    formats = (".onnx", ".ort")
    axes = (delegates("xnnpack", "nnapi", "qnn"),)

    def arguments(self, asked: Asked) -> list[str]:
        delegate = asked.axes["delegate"]
        alone = () if delegate == "auto" else ("-C", "session.disable_cpu_ep_fallback|1")
        return [
            *("-m", "times", "-r", str(asked.samples), "-I", "-S", str(SEED)),
            *("-e", "cpu" if delegate == "auto" else delegate, *alone),
            *(("-x", str(asked.threads)) if asked.threads else ()),
            *(asked.model, "/dev/stdout"),
        ]

    def model_of(self, workload: Workload) -> tuple[str, Mapping[str, Path]]:
        if workload.onnx is not None:
            files = {"model.onnx": self.host.models.file(workload.onnx, workload.onnx_sha256)}
            name = "model.onnx"
        else:
            name, found = super().model_of(workload)
            files = dict(found)
        if name.endswith(".onnx") and (open_sizes := _open_sizes(files[name])):
            raise Unsupported(
                f"the model leaves sizes open ({', '.join(open_sizes[:4])}), and the tool would take 1 for each",
                remedy="write the sizes into the file, as onnxruntime.tools.make_dynamic_shape_fixed does",
            )
        return name, files

    def told(self, lines: Sequence[Line], asked: Asked) -> Told:
        samples = SAMPLES.samples(lines)
        rows = [line for line in lines if line.stream == "stdout" and SAMPLES.samples([line])]
        agreed("the order of samples", [int(line.text.rsplit(",", 1)[1]) for line in rows], [*range(len(samples))])
        total = number(one_match(r"Total inference time cost: (\S+) s", lines, "the total")[1], "the total")
        count = one_match(r"Total inference requests: (\d+)", lines, "the count")[1]
        agreed("requests", int(count), asked.samples)
        agreed("samples", len(samples), asked.samples)
        agreed("the sum of samples", sum(each.duration_ns for each in samples) / 1e9, total, within=1e-5)
        mean = one_match(r"Average inference time cost(?: total)?: (\S+) ms", lines, "the mean")[1]
        agreed("the mean", number(mean, "the mean"), total * 1e3 / asked.samples, within=1e-4)
        if any("Fallback" in line.text and "CPUExecutionProvider" in line.text for line in lines):
            raise Unread("it speaks of a fall-back to the CPU")
        delegate = asked.axes["delegate"]
        return Told(samples, "CPU" if delegate == "auto" else f"{delegate} execution provider", threads=asked.threads)


def _open_sizes(path: Path) -> list[str]:
    """Return `input: name` of each size of an input that the file leaves open."""
    from kernels.frontend.onnx import read_model

    graph = read_model(path).proto.graph
    constant = {each.name for each in graph.initializer}
    return [
        f"{value.name}: {size.dim_param or '?'}"
        for value in graph.input
        if value.name not in constant
        for size in value.type.tensor_type.shape.dim
        if not size.dim_value
    ]


ENGINE = OnnxRuntimePerfTest
