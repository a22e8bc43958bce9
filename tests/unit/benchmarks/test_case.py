"""Networks as files, as `zoo.files` writes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from benchmarks.engine.case import inputs_file, make_case, model_file, read_case, relative_error, wanted_file


def test_a_network_as_files_is_read_again(tmp_path: Path) -> None:
    made = make_case("lenet", tmp_path / "made")
    folder, name = tmp_path / "files", "hf:lenet"
    folder.mkdir()
    shutil.copy(made.onnx, model_file(folder, name))
    for index, (inputs, wanted) in enumerate(zip(made.inputs, made.wanted, strict=True)):
        np.savez(inputs_file(folder, name, index), **inputs)  # type: ignore[arg-type]
        np.savez(wanted_file(folder, name, index), **wanted)  # type: ignore[arg-type]
    found = read_case(folder, model_file(folder, name).stem)
    assert found.graph.inputs == made.graph.inputs and found.onnx.is_file()
    assert all(relative_error(a, b) == 0 for a, b in zip(found.wanted, made.wanted, strict=True))
    assert all((a[key] == b[key]).all() for a, b in zip(found.inputs, made.inputs, strict=True) for key in a)
