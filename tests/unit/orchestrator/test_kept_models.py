"""The files of an experiment, kept as a worker finds them: a model is one file, wherever its weights lay."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from pydantic import ValidationError

import kernels.frontend.onnx
from kernels.frontend.onnx import load_onnx
from kernels.reference import evaluate
from orchestrator.acts.submission.prepare import prepare
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment import Experiment, Workload
from orchestrator.spec.expansion.expand import cells_of
from orchestrator.system.config import Settings
from tests.unit.imports.conftest import Farm, farm, ledger
from tests.unit.kernels.front.onnx_models import save_model

from . import make

__all__ = ["farm", "ledger"]


def saved(folder: Path, rng: np.random.Generator) -> Path:
    """Save a model with a weight, and a tensor in an attribute."""
    folder.mkdir()
    bias = onnx.numpy_helper.from_array(rng.standard_normal(4).astype(np.float32), "bias")
    nodes = [
        helper.make_node("Constant", [], ["b"], value=bias),
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    return save_model(folder / "m.onnx", nodes, {"x": (2, 3)}, ["y"], {"w": rng.standard_normal((3, 4), np.float32)})


def outside(path: Path) -> Path:
    """The same model, as PyTorch's exporter writes it: its numbers lie in a file beside it."""
    model = onnx.load(path)
    onnx.save_model(
        model, path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=0, convert_attribute=True
    )
    return path.with_name(f"{path.name}.data")


def named(model: str, side: str) -> Experiment:
    return Experiment.model_validate(
        {
            "name": "e",
            "workload": {"onnx": model},
            "devices": {"count": 1},
            "matrix": {"backend": ["cpu"]},
            "sides": {"baseline": {}, "candidate": {"onnx": side}},
            "measure": {"quantities": ["latency"]},
        }
    )


def test_a_model_is_kept_with_the_data_that_lie_beside_it(tmp_path: Path, seed: int) -> None:
    rng, artifacts = np.random.default_rng(seed), Artifacts(tmp_path / "state")
    models = [saved(tmp_path / name, rng) for name in "ab"]
    x = {"x": rng.standard_normal((2, 3)).astype(np.float32)}
    wanted = [evaluate(load_onnx(path), x)["y"] for path in models]
    for path in models:
        assert outside(path).stat().st_size >= 64
    found = prepare(named("a/m.onnx", "b/m.onnx"), tmp_path, artifacts)
    assert found.sides is not None
    kept = [found.workload.onnx_sha256, found.sides.candidate.onnx_sha256]
    for sha256, numbers in zip(kept, wanted, strict=True):
        np.testing.assert_array_equal(evaluate(load_onnx(artifacts.path(str(sha256))), x)["y"], numbers)


def test_files_of_other_engines_are_kept_and_each_cell_has_its_own(tmp_path: Path, seed: int) -> None:
    rng, artifacts = np.random.default_rng(seed), Artifacts(tmp_path / "state")
    saved(tmp_path / "a", rng)
    files = {name: rng.bytes(20) for name in ("x.param", "x.bin", "y.tflite")}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    given: dict[str, Any] = {
        "name": "e", "workload": {"onnx": "a/m.onnx"},
        "matrix": {"backend": "cpu", "engine": ["pocketfarm", "ncnn", "litert"]},
        "engine": {"models": {"ncnn": ["x.param", "x.bin"], "litert": "y.tflite"}},
    }  # fmt: skip
    cells = cells_of(prepare(Experiment.model_validate(given), tmp_path, artifacts))
    kept = {cell.engine: {name: artifacts.path(each).read_bytes() for name, each in cell.model_files.items()}
            for cell in cells}  # fmt: skip
    assert kept == {"pocketfarm": {}, "ncnn": {name: files[name] for name in ("x.param", "x.bin")},
                    "litert": {"y.tflite": files["y.tflite"]}}  # fmt: skip
    (tmp_path / "y.tflite").unlink()
    with pytest.raises(ModelFileError, match=r"engine\.models\.litert: there is no file"):
        prepare(Experiment.model_validate(given), tmp_path, artifacts)
    wrong = {"pocketfarm": "runs the workload itself", "mnn": "does not list", "litert": "at least 1 item"}
    name = rng.choice([*wrong])
    given["engine"] = {"models": {name: [] if name == "litert" else "y.tflite"}}
    with pytest.raises(ValidationError, match=wrong[name]):
        Experiment.model_validate(given)


def test_data_that_are_not_there_are_named(tmp_path: Path, seed: int) -> None:
    path = saved(tmp_path / "a", np.random.default_rng(seed))
    missing = outside(path)
    missing.unlink()
    with pytest.raises(ModelFileError, match=rf"a/m\.onnx: tensor .*{missing}.* put it beside the model"):
        prepare(named("a/m.onnx", "a/m.onnx"), tmp_path, Artifacts(tmp_path / "state"))


def test_what_one_file_cannot_hold_is_refused(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    outside(saved(tmp_path / "a", np.random.default_rng(seed)))
    monkeypatch.setattr("kernels.frontend.one_file.MOST_BYTES", 64)
    with pytest.raises(ModelFileError, match=r"a/m\.onnx: with its external data it has \d+ bytes; .*FLOAT16"):
        prepare(named("a/m.onnx", "a/m.onnx"), tmp_path, Artifacts(tmp_path / "state"))


def test_a_model_is_read_once_and_imported_once_a_batch(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is checked of it: with its data inside or beside it, an input, or a labelled set."""
    rng, calls = np.random.default_rng(seed), list[str]()

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(kernels.frontend.onnx, name)

        def call(*args: Any, **named: Any) -> Any:
            calls.append(name)
            return real(*args, **named)

        return call

    for name in ("read_model", "import_model"):
        monkeypatch.setattr(kernels.frontend.onnx, name, counted(name))
    path = save_model(
        tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("n", 3)}, ["y"],
        {"w": rng.standard_normal((3, 4), np.float32)},
    )  # fmt: skip
    if rng.integers(2):
        outside(path)
    np.save(tmp_path / "x.npy", rng.standard_normal((8, 3), np.float32))
    (tmp_path / "labels.txt").write_text("1\n" * 8)
    dataset = {"inputs": "x.npy", "labels": "labels.txt", "shard": 8}
    batches = [*map(int, rng.permutation([1, 2, 4, 8])[: rng.integers(1, 5)])]
    for more, axes in (({"dataset": dataset}, {"batch": batches}), ({"input": "x.npy"}, {})):
        calls.clear()
        workload = {"onnx": "m.onnx", **more}
        asked = {"name": "e", "workload": workload, "devices": {"count": 1}, "matrix": {"backend": ["cpu"], **axes}}
        prepare(Experiment.model_validate(asked), tmp_path, Artifacts(tmp_path / "state"))
        assert calls == ["read_model", *["import_model"] * len(axes.get("batch", [1]))]


def test_a_bundle_says_which_files_it_leaves_out(farm: Farm, ledger: Ledger, tmp_path: Path, seed: int) -> None:
    """Lost and damaged ones are told by the field that names them, and the others go along."""
    chance, artifacts = random.Random(seed), Artifacts(Settings().state)
    kept = {name: artifacts.put_bytes(chance.randbytes(20)) for name in ("onnx", "input", "choices", "prompt")}
    own = {f"{name}_sha256": sha256 for name, sha256 in kept.items()}
    workload = Workload(onnx="m.onnx", input="x.npy", choices="c.json", **own)  # type: ignore[arg-type]
    job = make.job("first-1")
    job = job.model_copy(update={"cell": job.cell.model_copy(update={"workload": workload})})
    assert ledger.submit("first-1", make.many(1, name="first"), [job])
    ledger.cancel(job.job_id)
    hurt = {name: chance.choice(("gone", "damaged")) for name in chance.sample(sorted(kept), chance.randrange(5))}
    for name, how in hurt.items():
        path = artifacts.path(kept[name])
        path.unlink() if how == "gone" else path.write_bytes(b"else")
    told = json.loads(farm("export", "first-1", "--bundle", "b.zip", "--models", "--json")[1])
    assert told["manifest"].get("files", {}).keys() == {kept[name] for name in kept.keys() - hurt.keys()}
    assert told["left_out"].keys() == {kept[name] for name in hurt}
    said = farm("export", "first-1", "--bundle", "c.zip", "--models")[2]
    assert said.count("left out") == len(hurt)
    for name, how in hurt.items():
        assert f"cell.workload.{name}: it is {'damaged' if how == 'damaged' else 'not kept'}" in said
