"""Models with the data that lie beside them, as one file."""

from __future__ import annotations

from pathlib import Path

from orchestrator.model.errors import ModelFileError


def in_one_file(path: Path, copy: Path) -> Path:
    """The file, or a copy of a model with the data inside that lie beside it. Raises ModelFileError."""
    if path.suffix != ".onnx":
        return path
    from kernels.errors import CompileError
    from kernels.frontend.one_file import one_file
    from kernels.frontend.onnx.reading.model_file import read_model

    try:
        content = one_file(read_model(path), path)
    except CompileError as e:
        raise ModelFileError(str(e)) from e
    if content is None:
        return path
    copy.write_bytes(content)
    return copy
