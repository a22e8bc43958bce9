"""Graph -> a plan that trains it."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np

from kernels.compile.assemble import assemble
from kernels.errors import OptionError
from kernels.ir.check import check_graph
from kernels.ir.graph import Graph
from kernels.ir.placement import NOTHING
from kernels.lower.draft import Draft
from kernels.memory.choose_layout import place_memory
from kernels.options import Limits, Options
from kernels.plan.model import Bundle, Port, Stage
from kernels.plan.validate import validate

from .descent import Descent
from .fused.machine import FusedMachine, is_fused
from .fused.tape import FusedTape
from .gradients import Tape
from .home import Home, Host
from .machine import CpuMachine, GpuMachine, Machine, Rows
from .options import TrainingOptions
from .per_node import NodeTape
from .shuffle import half_bits
from .stages import TrainingStage, stages_of
from .variables import Variable, variables_of

LABELS = "labels"
"""The input that has a class for each sample, a byte each."""


def compile_training(
    graph: Graph, training: TrainingOptions, options: Options, limits: Limits, *, spirv_cache: Path | None = None
) -> Bundle:
    """Compile the training of a graph, whose constants are where it starts and whose batch is that of its input.

    The plan's inputs are the whole data set: the graph's own input (samples, ...), and `labels` (samples) where a stage
    wants them. Raises OptionError, UnsupportedNode, PlanError, ToolError.
    """
    _check(graph, training, options, limits)
    check_graph(graph)
    program = _Program(graph, training, _machine(graph, training, options, limits))
    for stage in stages_of(graph, training):
        program.add(stage)
    draft = program.machine.draft
    layout = place_memory(draft, options, limits)
    bundle = assemble(draft, layout, options, limits, spirv_cache=spirv_cache)
    validate(bundle.plan, limits)
    return bundle


def _machine(graph: Graph, training: TrainingOptions, options: Options, limits: Limits) -> Machine:
    if options.backend == "cpu":
        return CpuMachine(Draft(graph.name))
    if is_fused(training, options, limits):
        return FusedMachine(graph, options, limits)
    return GpuMachine(graph, options, limits)


def _check(graph: Graph, training: TrainingOptions, options: Options, limits: Limits) -> None:
    if options.half:
        raise OptionError(f"training computes in fp32 or relaxed, not in {options.precision}")
    if training.steps in ("joined", "per_node") and options.backend == "cpu":
        raise OptionError(
            f"steps are {training.steps} on OpenCL and Vulkan alone: give `auto` or `apart` for the CPU backend"
        )
    if training.updates == "host" and options.backend == "cpu":
        raise OptionError("the CPU backend is the host's own: give `device` for its updates")
    if training.updates == "host" and training.steps == "joined":
        raise OptionError("joined steps update weights on the device: give `auto` or `apart` with updates on the host")
    if options.on_cpu != NOTHING:
        raise OptionError("training places no layers on the CPU: leave `on_cpu` out")
    if training.steps == "joined" and not is_fused(training, options, limits):
        raise OptionError("no team of work-items for joined steps fits this device: give `auto` or `apart`")
    if options.keep_all:
        raise OptionError("training keeps none of its tensors as outputs")
    batch = graph.shapes[graph.inputs[0]][0]
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise OptionError(f"{graph.name}: a network to be trained has one input and one output")
    if batch % 4 or batch > training.samples:
        raise OptionError(f"a batch of {batch}: give a multiple of 4, at most the {training.samples} samples")


class _Program:
    """Buffers that the stages share, and their steps."""

    def __init__(self, graph: Graph, training: TrainingOptions, machine: Machine) -> None:
        self._training, self.machine = training, machine
        self._home = Host(machine.draft) if training.updates == "host" else Home(machine)
        self._batch = graph.shapes[graph.inputs[0]][0]
        self._batches = training.samples // self._batch
        self._variables: dict[str, Variable] = {}
        self._buffers: dict[str, str] = {}
        """Buffers of variables, at home."""
        self._data = self._add_port(graph.inputs[0], graph.shapes[graph.inputs[0]][1:])
        self._labels = ""

    def add(self, stage: TrainingStage) -> None:
        """A pass through a batch: gather, forward, loss, backward, step, count."""
        machine, home, graph, steps = self.machine, self._home, stage.graph, self.machine.draft.steps
        begin = len(steps)
        self._add_variables(graph)
        counter = home.machine.buffer(f"{stage.name}:counter", (4,), "variable", np.zeros(4, np.int32), "i32")
        report = home.machine.buffer(f"{stage.name}:report", (4,), "variable", np.zeros(4, np.float32))
        descent = Descent(home, stage, self._training, self._buffers, counter, self._batches)
        lent = {name: home.lend(self._buffers[name]) for name in variables_of(graph)}
        counted = home.lend(counter)
        tape = self._tape_class()(machine, stage, self._variables, lent, descent)
        tape.values[graph.inputs[0]] = self._gather(graph, counted)
        for node in graph.nodes:
            tape.forward(node)
        losses, count, gradient = self._loss(stage, tape, counted)
        tape.backward(stage.output, gradient)
        losses = home.collect(losses)
        tape.steps()
        classifies = not stage.target
        home.machine.kernel(
            "count_batch", f"{stage.name}:count", {"losses": losses, "report": report, "counter": counter},
            {"count": count, "batches": self._batches, "classifies": int(classifies)}, (1, 1),
        )  # fmt: skip
        machine.draft.stages.append(
            Stage(
                name=stage.name, begin=begin, end=len(steps), epochs=stage.epochs, batches=self._batches,
                samples=self._batches * self._batch, counter=counter, report=report, classifies=classifies,
            )
        )  # fmt: skip

    def _tape_class(self) -> type[Tape]:
        if self._training.steps == "per_node":
            return NodeTape
        return FusedTape if isinstance(self.machine, FusedMachine) else Tape

    def _add_port(self, name: str, shape: tuple[int, ...], *, labels: bool = False) -> str:
        machine, whole = self.machine, (self._training.samples, *shape)
        dtype = "u8" if labels else self._training.input_dtype
        buffer = machine.buffer(name, whole, "data", dtype=dtype)
        machine.draft.inputs.append(Port(name=name, buffer=buffer, shape=whole, dtype=dtype))
        return buffer

    def _add_variables(self, graph: Graph) -> None:
        for name, variable in variables_of(graph).items():
            if name not in self._variables:
                self._variables[name] = variable
                content = variable.lay(graph.constants[name])
                self._buffers[name] = self._home.machine.buffer(name, content.shape, "variable", content)

    def _gather(self, graph: Graph, counter: str) -> Rows:
        batch, columns, *pixels = graph.shapes[graph.inputs[0]]
        height, width = pixels or (1, 1)
        target = self.machine.rows("batch", batch, columns, height, width)
        kernel = "gather_bytes" if self._training.input_dtype == "u8" else "gather"
        ints = {**self._shuffled(), "columns": columns, "hw": prod(pixels), "stride": target.stride}
        buffers = {"data": self._data, "counter": counter, "dst": target.buffer}
        floats = {"scale": self._training.input_scale}
        self.machine.kernel(kernel, "gather", buffers, ints, (target.elements, 1), floats)
        return target

    def _loss(self, stage: TrainingStage, tape: Tape, counter: str) -> tuple[str, int, Rows]:
        """The buffer of the losses, their number, and the gradient of the output."""
        machine, value = self.machine, tape.values[stage.output]
        if stage.target:
            return tape.squared_error()
        gradient = machine.rows(f"{stage.output}:gradient", value.n, value.c)
        sizes = {"columns": value.c, "stride": value.stride}
        buffers, floats = {"src": value.buffer, "dst": gradient.buffer}, {"share": 1 / self._batch}
        self._labels = self._labels or self._add_port(LABELS, (), labels=True)
        losses = machine.buffer(f"{stage.name}:losses", (2, self._batch), "activation")
        buffers |= {"labels": self._labels, "counter": counter, "losses": losses}
        ints = {**sizes, **self._shuffled()}
        machine.kernel("cross_entropy", f"{stage.name}:loss", buffers, ints, (self._batch, 1), floats)
        return losses, self._batch, gradient

    def _shuffled(self) -> Mapping[str, int]:
        samples = self._training.samples
        return {
            "batch": self._batch, "batches": self._batches, "samples": samples, "seed": self._training.seed,
            "half_bits": half_bits(samples),
        }  # fmt: skip
