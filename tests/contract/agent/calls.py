"""Many calls of the agent's CPU operations in one plan."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from kernels.lower.cpu.agent_operations import CPU_OPERATIONS
from kernels.plan.model import (
    ITEM_BYTES,
    Argument,
    Buffer,
    BufferArgument,
    Bundle,
    Dispatch,
    Dtype,
    FloatArgument,
    IntArgument,
    Plan,
    Pool,
    Port,
    Program,
    Requires,
)
from kernels.plan.port_values import NUMPY

from .driver import Agent
from .plans import Array

ALIGNMENT = 64


@dataclass
class Calls:
    """Each call gets operands of its own and one result."""

    operation: str
    blob: bytearray = field(default_factory=bytearray)
    buffers: list[Buffer] = field(default_factory=list)
    steps: list[Dispatch] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    dtypes: list[Dtype] = field(default_factory=list)
    """The results' types."""
    end: int = 0
    """First free byte of the pool."""

    def add(
        self, operands: Mapping[str, Array | None], ints: Mapping[str, int], shape: tuple[int, ...],
        floats: Mapping[str, float] | None = None, dtype: Dtype = "f32",
    ) -> None:  # fmt: skip
        """Append a call; a buffer that is not given, or None, is the destination itself."""
        number = len(self.steps)
        target = self._buffer(f"{number}:dst", ITEM_BYTES[dtype] * prod(shape), "output", dtype)
        self.dtypes.append(dtype)
        names = dict[str, str]()
        for name, array in operands.items():
            names[name] = target if array is None else self._weight(f"{number}:{name}", array)
        values = {**ints, **(floats or {})}
        arguments: list[Argument] = []
        for parameter in CPU_OPERATIONS[self.operation]:
            if parameter.kind == "buffer":
                arguments.append(BufferArgument(buffer=names.get(parameter.name, target)))
            elif parameter.kind == "i32":
                arguments.append(IntArgument(i32=int(values[parameter.name])))
            else:
                arguments.append(FloatArgument(f32=float(values.get(parameter.name, 0.0))))
        layer = f"call {number}"
        self.steps.append(Dispatch(program="p", layer=layer, work_items=(1, 1, 1), arguments=tuple(arguments)))
        self.shapes.append(shape)

    def _buffer(self, name: str, size: int, role: str, dtype: Dtype, blob_offset: int | None = None) -> str:
        self.buffers.append(
            Buffer.model_validate(
                {
                    "id": name,
                    "pool": "pool",
                    "offset": self.end,
                    "bytes": size,
                    "role": role,
                    "blob_offset": blob_offset,
                    "tensor": {"shape": (size // ITEM_BYTES[dtype],), "dtype": dtype},
                }
            )
        )
        self.end += -(-size // ALIGNMENT) * ALIGNMENT
        return name

    def _weight(self, name: str, array: Array) -> str:
        dtype = next((kind for kind, name in NUMPY.items() if np.dtype(name) == array.dtype), "f32")
        content = np.ascontiguousarray(array, NUMPY[dtype]).tobytes()
        offset = len(self.blob)
        self.blob += content
        return self._buffer(name, len(content), "weight", dtype, offset)

    def bundle(self) -> Bundle:
        blob = bytes(self.blob)
        plan = Plan(
            name=self.operation, api="cpu", precision="fp32", blob_bytes=len(blob),
            files={"blob.bin": hashlib.sha256(blob).hexdigest()},
            requires=Requires(total_bytes=self.end, max_buffer_bytes=self.end),
            programs=(Program(id="p", kernel=self.operation, parameters=CPU_OPERATIONS[self.operation]),),
            pools=(Pool(id="pool", bytes=self.end),), buffers=tuple(self.buffers), steps=tuple(self.steps), inputs=(),
            outputs=tuple(
                Port(name=f"{i}", buffer=f"{i}:dst", shape=shape, dtype=dtype)
                for i, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True))
            ),
        )  # fmt: skip
        return Bundle(plan, {"blob.bin": blob})

    def run(self, agent: Agent, *options: object) -> list[Array]:
        """The calls' results, in order. Threads of a call share out its work, however small."""
        run = agent.run(self.bundle(), {}, *options, "--threads-per-call")
        assert run.code == 0, run.events[-1]
        return [run.output(i).reshape(shape) for i, shape in enumerate(self.shapes)]


def noise(draw: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return draw.standard_normal(shape, dtype=np.float32)


def moved(perm: Sequence[int], extents: Sequence[int], base: int = 0, start: int = 0, more: int = 0) -> dict[str, int]:
    """Arguments of a `take` of turned axes, whose rows lie `more` apart than they are long."""
    ints = {f"{name}{i}": fill for name, fill in (("d", 1), ("s", 0), ("t", -1)) for i in range(8)}
    for place, axis in enumerate(perm, 8 - len(perm)):
        ints |= {f"d{place}": extents[axis], f"s{place}": prod(extents[axis + 1 :])}
    return {**ints, "base": base, "low": 0, "high": 0, "dst_start": start, "dst_step": ints["d7"] + more}
