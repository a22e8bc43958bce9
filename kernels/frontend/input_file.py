"""Files of inputs: which arrays they hold, of which shapes, and what fp32 makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import InputError

Arrays = Mapping[str, npt.NDArray[Any]]
ONLY = ""
"""The name of an array that is the model's only input."""


@dataclass(frozen=True)
class Given:
    """Shapes of arrays by the input's name, from which open sizes are taken; None: a size that is not told."""

    shapes: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    source: str = ""
    """The file that they are in, for messages."""
    is_set: bool = False
    """The first size is how many examples there are, which is not told."""

    @classmethod
    def of(cls, arrays: Arrays, source: Path | str) -> Given:
        return cls({name: array.shape for name, array in arrays.items()}, str(source))

    def shape(self, name: str, inputs: int) -> tuple[int | None, ...] | None:
        """Return the shape of an input, of so many; None where nothing is given for it."""
        return self.shapes.get(name, self.shapes.get(ONLY) if inputs == 1 else None)


NOTHING_GIVEN = Given()


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The array of a `.npy`, named ONLY, or those of a `.npz` by name. Raises InputError for what cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(len(np.lib.format.MAGIC_PREFIX))
            if start.startswith(b"\x80"):
                raise InputError(f"{path}: a pickle, which is never loaded; write the array with numpy.save")
            if not start.startswith((np.lib.format.MAGIC_PREFIX, b"PK")):
                raise InputError(f"{path}: no .npy or .npz file; write the array with numpy.save")
            file.seek(0)
            content = np.load(file, allow_pickle=False)
            return {ONLY: content} if isinstance(content, np.ndarray) else dict(content)
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror or e}; give the path of a .npy or .npz file") from e
    except InputError:
        raise
    except Exception as e:  # numpy parses the head of a file as Python, which raises what it likes
        raise InputError(f"{path}: no readable .npy or .npz file: {e}; write it with numpy.save") from e
