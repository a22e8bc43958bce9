"""A plan before memory is laid out and programs are rendered: lowering writes it, `compile/assemble.py` ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy.typing as npt

from kernels.plan.model import (
    Argument,
    BufferArgument,
    FloatArgument,
    Generation,
    IntArgument,
    Parameter,
    Port,
    Side,
    Stage,
    Step,
    Tensor,
)
from kernels.plan.steps import renamed
from kernels.source.kernel import Kernel

Role = Literal["input", "output", "weight", "offloaded", "activation", "scratch", "variable", "data"]


@dataclass(frozen=True)
class Streamed:
    """Content of `size` bytes that is made a piece at a time whenever it is read, so that it never lies in memory
    whole. The same `digest` stands for the same content."""

    digest: str
    size: int
    pieces: Callable[[], Iterable[npt.NDArray[Any]]] = field(compare=False, repr=False)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.pieces())


Content = bytes | Streamed


@dataclass(frozen=True)
class DraftBuffer:
    """A buffer without a place yet."""

    id: str
    size: int
    """Bytes."""
    role: Role
    tensor: Tensor
    content: Content | None = None
    """The content of weights and variables at the start."""
    side: Side = ""
    shared: bool = False
    """The host writes or reads it between steps: it lies where both see it, as ports do."""


@dataclass(frozen=True)
class DraftProgram:
    """A kernel with its constants and work-group; `kernel` is None for an operation of the CPU backend."""

    id: str
    name: str
    kernel: Kernel | None
    constants: Mapping[str, int] = field(default_factory=dict)
    work_group: tuple[int, int, int] = (1, 1, 1)
    side: Side = ""


@dataclass
class Draft:
    """Programs, buffers and steps in order."""

    name: str
    buffers: dict[str, DraftBuffer] = field(default_factory=dict)
    programs: dict[str, DraftProgram] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    waves: list[int] = field(default_factory=list)
    """Wave of each step, if they are sorted by waves (`kernels/memory/waves.py`): steps of a wave may run together."""
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    """Stages of a plan that trains."""
    generation: Generation | None = None
    """Passes of a plan that generates."""
    chosen: dict[str, str] = field(default_factory=dict)
    """Layer -> algorithm, for people."""
    refused: dict[str, str] = field(default_factory=dict)
    """Layer -> why it is not computed by the algorithm that was asked for."""
    saved: str = ""
    """The way in which memory was saved, for people."""
    in_parts: dict[str, str] = field(default_factory=dict)
    """Layer -> into how many parts it was divided and why, for people."""
    _ids: dict[str, int] = field(default_factory=dict)
    _weights: dict[tuple[Tensor, Content, Side], str] = field(default_factory=dict)

    def choose(self, layer: str, algorithm: str, refusal: str) -> None:
        """Tell by what a layer is computed, and why not as it was asked for; `refusal` is empty where it is."""
        self.chosen[layer] = algorithm
        if refusal:
            self.refused[layer] = refusal

    @property
    def parameters(self) -> dict[str, tuple[Parameter, ...]]:
        """Program -> what it takes; of those with kernels, which no operation of the CPU backend has."""
        return {name: program.kernel.parameters for name, program in self.programs.items() if program.kernel}

    @property
    def roles(self) -> dict[str, str]:
        """Buffer -> role."""
        return {name: buffer.role for name, buffer in self.buffers.items()}

    def add_buffer(
        self, wanted: str, size: int, role: Role, tensor: Tensor, content: Content | None = None, side: Side = ""
    ) -> str:
        """Add a buffer under a free id made from `wanted`; its size is rounded up to whole vectors (16 bytes)."""
        count = self._ids.get(wanted, 0)
        self._ids[wanted] = count + 1
        name = wanted if count == 0 else f"{wanted}~{count}"
        if name in self.buffers:
            return self.add_buffer(wanted, size, role, tensor, content, side)
        self.buffers[name] = DraftBuffer(name, max(16, (size + 15) // 16 * 16), role, tensor, content, side=side)
        return name

    def share(self, name: str) -> None:
        """The host writes or reads a buffer between steps."""
        self.buffers[name] = replace(self.buffers[name], shared=True)

    def add_weight(self, wanted: str, content: Content, tensor: Tensor, side: Side = "") -> str:
        """Add constant content; the same content is kept once."""
        key = tensor, content, side
        if key not in self._weights:
            self._weights[key] = self.add_buffer(wanted, len(content), "weight", tensor, content, side)
        return self._weights[key]

    def take_in(self, other: Draft) -> dict[str, str]:
        """Append the steps of another draft; weights of the same content and variables of the same name are kept once.
        Returns the new names of its buffers."""
        names = {name: self._taken_in(buffer) for name, buffer in other.buffers.items()}
        programs = dict[str, str]()
        for program in other.programs.values():
            id = program.id
            while self.programs.setdefault(id, replace(program, id=id)) != replace(program, id=id):
                id += "~"
            programs[program.id] = id
        behind = max(self.waves, default=-1) + 1
        self.waves += [behind + wave for wave in other.waves or range(len(other.steps) if self.waves else 0)]
        self.steps += [renamed(step, names.__getitem__, programs.__getitem__) for step in other.steps]
        self.chosen, self.refused = {**other.chosen, **self.chosen}, {**other.refused, **self.refused}
        return names

    def _taken_in(self, buffer: DraftBuffer) -> str:
        if buffer.role == "weight" and buffer.content is not None:
            return self.add_weight(buffer.id, buffer.content, buffer.tensor, buffer.side)
        if buffer.role == "variable" and buffer.id in self.buffers:
            return buffer.id
        name = self.add_buffer(buffer.id, buffer.size, buffer.role, buffer.tensor, buffer.content, buffer.side)
        self.buffers[name] = replace(buffer, id=name)
        return name


def arguments(
    buffers: Mapping[str, BufferArgument],
    parameters: tuple[str, ...],
    ints: Mapping[str, int],
    floats: Mapping[str, float],
) -> tuple[Argument, ...]:
    """Order named values as a program's parameters are ordered. A missing or surplus name is a KeyError."""
    given = {*buffers, *ints, *floats}
    if given != set(parameters):
        raise KeyError(f"arguments {sorted(given ^ set(parameters))} are missing or not known")
    out: list[Argument] = []
    for name in parameters:
        if name in buffers:
            out.append(buffers[name])
        elif name in ints:
            out.append(IntArgument(i32=ints[name]))
        else:
            out.append(FloatArgument(f32=floats[name]))
    return tuple(out)
