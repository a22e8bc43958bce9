"""Training sets of every kind become the same two arrays, or are refused by name; what an experiment may ask."""

from __future__ import annotations

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from orchestrator.acts.submission.prepare import prepare
from orchestrator.acts.submission.training_sets import enlarged, kept
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.axes import unused
from orchestrator.model.errors import ModelFileError
from orchestrator.model.experiment import Experiment, Training

COUNT = 12


@pytest.fixture
def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (COUNT, 3, 4), dtype=np.uint8), rng.integers(0, 5, COUNT, dtype=np.uint8)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def asked(**dataset: object) -> Training:
    return Training.model_validate({"dataset": dataset, "epochs": 1, "batch": 4})


def write(folder: Path, kind: str, inputs: np.ndarray, labels: np.ndarray) -> dict[str, str]:
    if kind == "idx":
        (folder / "images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(inputs)))
        (folder / "labels-idx1-ubyte").write_bytes(idx(labels))
        return {"inputs": "images-idx3-ubyte.gz", "labels": "labels-idx1-ubyte"}
    if kind == "npz":
        np.savez(folder / "set.npz", x_train=inputs, y_train=labels.astype(np.int64))
        return {"inputs": "set.npz"}
    if kind == "npy":
        np.save(folder / "x.npy", inputs)
        np.save(folder / "y.npy", labels)
        return {"inputs": "x.npy", "labels": "y.npy"}
    flat = inputs.reshape(COUNT, -1)
    columns = {"pixels": flat.tolist()} if kind == "parquet" else {f"p{i}": flat[:, i] for i in range(flat.shape[1])}
    parquet.write_table(pa.table({**columns, "label": labels}), folder / "set.parquet")
    return {"inputs": "set.parquet"}


@pytest.mark.parametrize("kind", ["idx", "npz", "npy", "parquet", "parquet of columns"])
def test_sets_of_every_kind_are_kept_alike(tmp_path: Path, data: tuple[np.ndarray, np.ndarray], kind: str) -> None:
    artifacts = Artifacts(tmp_path)
    dataset = kept(asked(**write(tmp_path, kind, *data)), tmp_path, (12,), 5, artifacts).dataset
    inputs, labels = (np.load(artifacts.path(str(each))) for each in (dataset.inputs_sha256, dataset.labels_sha256))
    np.testing.assert_array_equal(inputs, data[0].reshape(COUNT, 12))
    np.testing.assert_array_equal(labels, data[1])
    assert (inputs.dtype, labels.dtype, dataset.size, dataset.scale) == (np.uint8, np.uint8, COUNT, 1 / 255)


def test_floats_stay_floats_and_need_no_classes(tmp_path: Path, seed: int) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(seed).random((COUNT, 6)))
    training = asked(inputs="x.npy", held_out="25 %").model_copy(update={"loss": "mean_squared_error"})
    dataset = kept(training, tmp_path, (6,), 6, Artifacts(tmp_path)).dataset
    inputs = np.load(Artifacts(tmp_path).path(str(dataset.inputs_sha256)))
    assert inputs.dtype == np.float32 and (dataset.scale, dataset.labels_sha256) == (1.0, None)
    assert (dataset.trained, dataset.evaluated) == (9, range(9, 12))


@pytest.mark.parametrize(
    ("dims", "classes", "change", "complaint"),
    [
        ((13,), 5, {}, "the network takes samples x 13"),
        ((12,), 2, {}, "the network has 2, from 0 on"),
        ((12,), 5, {"labels": "none.npy"}, "there is no file"),
        ((12,), 5, {"inputs": "bad.npz"}, r"bad\.npz: cannot be read"),
        ((12,), 5, {"inputs": "cut", "labels": None}, "numbers, where 12 x 3 x 4 are announced"),
        ((12,), 5, {"labels": None}, "needs the class of each sample"),
        ((12,), 5, {"held_out": "99 %"}, "are fewer than a batch"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], dims: tuple[int, ...], classes: int, change: dict[str, object],
    complaint: str,
) -> None:  # fmt: skip
    data[1][0] = 4
    files = write(tmp_path, "npy", *data)
    (tmp_path / "bad.npz").write_bytes(b"PK no zip")
    (tmp_path / "cut").write_bytes(idx(data[0])[:-1])
    with pytest.raises(ModelFileError, match=complaint):
        kept(asked(**{**files, **change}), tmp_path, dims, classes, Artifacts(tmp_path))


def test_the_named_digits(tmp_path: Path) -> None:
    if not os.environ.get("CI"):
        pytest.importorskip("sklearn")
    experiment = Experiment.model_validate(
        {
            "name": "digits",
            "workload": {
                "network": "classifier_784",
                "parameters": {"hidden": [12], "inputs": 64},
                "training": {"dataset": {"named": "digits", "held_out": "20 %"}, "epochs": 3},
            },
        }
    )
    assert (experiment.sampling.blocks, experiment.sampling.warmup, experiment.sampling.samples) == (1, 0, 3)
    training = prepare(experiment, tmp_path, Artifacts(tmp_path)).workload.training
    assert training is not None and training.dataset.size == 1797 and training.dataset.scale == 1 / 16
    labels = np.load(Artifacts(tmp_path).path(str(training.dataset.labels_sha256)))
    assert set(labels[training.dataset.trained :]) == set(range(10)), "the held-out part knows every class"


def test_the_digits_are_enlarged_where_the_network_takes_larger_squares() -> None:
    """Each pixel is a square; MNIST's size leaves two rows and columns around."""
    images = np.arange(1, 129, dtype=np.uint8).reshape(2, 8, 8)
    large = enlarged(images, 28).reshape(2, 28, 28)
    assert not large[:, :2].any() and not large[:, 26:].any() and not large[:, :, :2].any()
    np.testing.assert_array_equal(large[:, 3:26:3, 3:26:3], images)
    assert (large[:, 2:26, 2:26].reshape(2, 8, 3, 8, 3) == images[:, :, None, :, None]).all()
    np.testing.assert_array_equal(enlarged(images, 10), images.reshape(2, 64))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sampling": {"warmup": 2}}, "leave out `sampling.warmup`"),
        ({"sampling": {"samples": 9}}, "leave out `sampling.samples`"),
        ({"measure": {"quantities": ["layers"]}}, "leave out `measure.quantities: layers`"),
        ({"matrix": {"batch": 6}}, "by multiples of four"),
        ({"matrix": {"precision": "fp16"}}, "a training computes in fp32 or relaxed"),
    ],
)
def test_what_makes_no_sense_with_a_training(change: dict[str, object], complaint: str) -> None:
    workload = {"network": "classifier_784", "training": {"dataset": {"named": "digits"}, "epochs": 3}}
    with pytest.raises(ValueError, match=complaint):
        Experiment.model_validate({"name": "x", "workload": workload, **change})


def test_joined_steps_are_refused_with_the_cpu() -> None:
    """They are refused by name, at submission; on the GPUs' backends they are taken."""
    training = {"dataset": {"named": "digits"}, "epochs": 3, "steps": "joined"}
    asked = {"name": "x", "workload": {"network": "classifier_784", "training": training}}
    assert Experiment.model_validate({**asked, "matrix": {"backend": ["opencl", "vulkan"]}}).workload.training
    with pytest.raises(ValueError, match=r"cpu out of `matrix\.backend`"):
        Experiment.model_validate({**asked, "matrix": {"backend": ["vulkan", "cpu"]}})


def test_updates_are_of_trainings() -> None:
    """Their steps are apart, too; with updates of the host the CPU backend's axes mean something."""
    training = {"dataset": {"named": "digits"}, "epochs": 3}
    workload: dict[str, object] = {"network": "classifier_784", "training": training}
    both = {"updates": ["device", "host"], "backend": "vulkan"}
    assert Experiment.model_validate({"name": "x", "workload": workload, "matrix": both}).matrix.updates
    joined = {**workload, "training": {**training, "steps": "joined"}}
    for wrong, complaint in ((joined, "joined steps update weights on the device"), ({"network": "lenet"}, "only an")):
        with pytest.raises(ValueError, match=complaint):
            Experiment.model_validate({"name": "x", "workload": wrong, "matrix": both})
    assert unused("opencl", {"updates": "host", "threads": 1}) == {}
    assert unused("opencl", {"updates": "device", "threads": 1}).keys() == {"threads"}
    assert unused("cpu", {"updates": "host", "threads": 1}).keys() == {"updates"}


def test_a_kept_model_is_named_by_its_hash(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"a model")
    artifacts = Artifacts(tmp_path)
    sha256 = artifacts.put(file)
    assert artifacts.named(sha256[:8]) == artifacts.named(sha256) == sha256
    for wrong in ("0" * 8, sha256[:7], "../../etc"):
        with pytest.raises(ModelFileError):
            artifacts.named(wrong)
