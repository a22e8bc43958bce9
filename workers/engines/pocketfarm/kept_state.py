"""A language model's state in a file: the keys and values of the tokens that it has taken, for any later plan of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError, PlanError
from kernels.frontend.gguf import is_gguf
from kernels.frontend.load import decoder_path
from kernels.plan.model import Buffer, Plan
from kernels.plan.port_values import NUMPY
from kernels.training import sealed, unsealed

_KIND = "state"
_ROWS = 2
"""The axis of a variable that has a row for each token: (batch, heads, tokens, numbers of a head)."""


@dataclass(frozen=True)
class KeptState:
    """The tokens that a model has taken, with their rows alone: another plan has other room for them."""

    model: str
    """The model's SHA-256."""
    backend: str
    precision: str
    tokens: tuple[int, ...]
    rows: Mapping[str, bytes]

    @classmethod
    def read(cls, file: Path) -> KeptState:
        """Read a file of `content`. Raises PlanError for what is damaged, or something else."""
        try:
            content = file.read_bytes()
        except OSError as e:
            raise PlanError(f"{file}: cannot be read: {e.strerror}; give a file of --save-state") from e
        told, rows = unsealed(content, str(file), _KIND)
        try:
            return cls(told["model"], told["backend"], told["precision"], tuple(map(int, told["tokens"])), rows)
        except (KeyError, TypeError, ValueError) as e:
            raise PlanError(f"{file}: no {_KIND} of a language model; give a file of --save-state") from e

    def content(self) -> bytes:
        """Return the file's content."""
        head = {_KIND: 1, "model": self.model, "backend": self.backend, "precision": self.precision}
        return sealed({**head, "count": len(self.tokens), "tokens": self.tokens}, self.rows)

    def check(self, file: Path, model: str, backend: str, precision: str) -> None:
        """Raise InputError where it is not the state of a model, on a backend, in a precision."""
        if self.model != model:
            raise InputError(f"{file}: the state of another model: its SHA-256 is {self.model[:16]}, not {model[:16]}")
        if (self.backend, self.precision) != (backend, precision):
            own = f"--backend {self.backend} --precision {self.precision}"
            raise InputError(
                f"{file}: its numbers are those of {own}, not of {backend} in {precision}: ask for its own"
            )

    def checkpoint(self, plan: Plan) -> bytes:
        """Return the file from which the agent goes on with a plan. Raises PlanError where it is no plan for it."""
        content = dict[str, bytes]()
        for buffer, shape in _variables(plan):
            room = np.zeros(shape, _item(buffer))
            kept = room[:, :, : len(self.tokens)]
            rows = self.rows.get(buffer.id, b"")
            if len(rows) != kept.nbytes:
                raise PlanError(f"the state has {len(rows)} bytes of {buffer.id!r}, the plan takes {kept.nbytes}")
            kept[:] = np.frombuffer(rows, room.dtype).reshape(kept.shape)
            content[buffer.id] = room.tobytes().ljust(buffer.bytes, b"\0")
        return sealed({"checkpoint": 1, "plan": plan.plan_hash}, content)


def state_of(plan: Plan, checkpoint: bytes, model: str, tokens: tuple[int, ...]) -> KeptState:
    """Return the state that a run of a plan has left in its checkpoint, of so many tokens."""
    _, found = unsealed(checkpoint, "the agent's file", "checkpoint")
    rows = dict[str, bytes]()
    for buffer, shape in _variables(plan):
        whole = np.frombuffer(found[buffer.id], _item(buffer))[: np.prod(shape)].reshape(shape)
        rows[buffer.id] = whole[:, :, : len(tokens)].tobytes()
    return KeptState(model, plan.api, plan.precision, tokens, rows)


def identity_of(model: Path) -> str:
    """Return the SHA-256 of a model: of its file, and of those in which its weights lie. Raises ModelError."""
    from kernels.frontend.onnx import read_model
    from kernels.frontend.onnx.reading.model_file import external_tensors

    path, digest = decoder_path(model), hashlib.sha256()
    files = {path}
    if not is_gguf(path):
        told = (entry for each in external_tensors(read_model(path).proto) for entry in each.external_data)
        files |= {path.parent / entry.value for entry in told if entry.key == "location"}
    for each in sorted(files):
        with each.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()


def _variables(plan: Plan) -> Iterator[tuple[Buffer, tuple[int, ...]]]:
    """Yield the plan's variables with their shapes, in its order."""
    assert plan.generation is not None
    for buffer in plan.buffers:
        if buffer.role != "variable":
            continue
        shape = () if buffer.tensor is None else buffer.tensor.shape
        if len(shape) != _ROWS + 2 or shape[_ROWS] != plan.generation.capacity:
            raise PlanError(f"{plan.name}: its variable {buffer.id!r} of shape {shape} has no row for each token")
        yield buffer, shape


def _item(buffer: Buffer) -> npt.DTypeLike:
    assert buffer.tensor is not None
    return NUMPY[buffer.tensor.dtype]
