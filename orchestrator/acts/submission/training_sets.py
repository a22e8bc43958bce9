"""Read a training set of any kind that is taken, and keep it as two arrays, which is what hosts and devices get."""

from __future__ import annotations

import gzip
import math
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import ModelFileError, SetupError
from orchestrator.model.experiment import Training, TrainingSet
from orchestrator.model.quantity import counted

AnyArray = npt.NDArray[Any]
INPUTS, LABELS = ("inputs", "x_train", "x"), ("labels", "y_train", "y")
COLUMN = "label"
DIGITS_SCALE, DIGITS_SEED = 1 / 16, 1
_IDX_TYPES: dict[int, np.dtype[Any]] = {
    number: np.dtype(name) for number, name in {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}.items()
}
"""The types by the byte that names them."""
FIELD = "workload.training.dataset"


class _Found(NamedTuple):
    inputs: AnyArray
    labels: AnyArray | None


def kept(training: Training, base: Path, dims: tuple[int, ...], classes: int, artifacts: Artifacts) -> Training:
    """The training with its set checked and kept. `dims`: of one input of the network; `classes`: of its output.

    Raises ModelFileError where a file cannot be used, SetupError where scikit-learn is missing.
    """
    asked = training.dataset
    found = _digits(math.prod(dims)) if asked.named else _read(asked, base)
    inputs = _inputs(found.inputs, dims, asked)
    labels = None
    if training.loss == "cross_entropy":
        labels = _labels(found.labels, len(inputs), classes, asked)
    scale = asked.scale or (DIGITS_SCALE if asked.named else 1 / 255 if inputs.dtype == np.uint8 else 1.0)
    update: dict[str, object] = {"inputs_sha256": _put(inputs, artifacts), "size": len(inputs), "scale": scale}
    if labels is not None:
        update["labels_sha256"] = _put(labels, artifacts)
    dataset = asked.model_copy(update=update)
    if dataset.trained < training.batch:
        raise ModelFileError(f"{FIELD}: {counted(dataset.trained, 'sample')} to train with are fewer than a batch")
    return training.model_copy(update={"dataset": dataset})


def _digits(numbers: int) -> _Found:
    """`numbers`: of one input of the network. Where that is a larger square, each pixel becomes a square of its own."""
    try:
        from sklearn.datasets import load_digits  # a heavy library, for this set alone
    except ImportError as e:
        raise SetupError(
            f"{FIELD}.named: `digits` comes with scikit-learn, which is not installed",
            remedy="pip install 'pocketfarm[digits]', or give files as `inputs` and `labels`",
        ) from e
    digits = load_digits()
    order = np.random.default_rng(DIGITS_SEED).permutation(len(digits.target))
    return _Found(enlarged(digits.images[order].astype(np.uint8), math.isqrt(numbers)), digits.target[order])


def enlarged(images: AnyArray, side: int) -> AnyArray:
    """Images of 8 x 8 -> rows of side * side pixels, the image in the middle; as they are below twice the size."""
    times = max(1, side // 8)
    large = images.repeat(times, axis=1).repeat(times, axis=2)
    before, after = (side - 8 * times) // 2, -((8 * times - side) // 2)
    return np.pad(large, ((0, 0), *[(before, after)] * 2) if times > 1 else 0).reshape(len(images), -1)


def _read(asked: TrainingSet, base: Path) -> _Found:
    path = base / str(asked.inputs)
    found = _file(path, INPUTS)
    if asked.labels is None:
        return found
    own = _file(base / asked.labels, LABELS)
    return _Found(found.inputs, own.inputs)


def _file(path: Path, names: tuple[str, ...]) -> _Found:
    readers: dict[str, Callable[[], _Found]] = {
        ".npy": lambda: _Found(np.load(path, allow_pickle=False), None),
        ".npz": lambda: _npz(path, names),
        ".parquet": lambda: _parquet(path),
    }
    if not path.is_file():
        raise ModelFileError(f"{FIELD}: there is no file {path}", remedy="paths are relative to the experiment file")
    try:
        return readers.get(path.suffix, lambda: _Found(_idx(path), None))()
    except (OSError, ValueError, EOFError, BadZipFile, KeyError, struct.error, zlib.error) as e:
        raise ModelFileError(
            f"{FIELD}: {path}: cannot be read: {e}", remedy="give IDX (also .gz), .npy, .npz or .parquet"
        ) from e


def _idx(path: Path) -> AnyArray:
    """MNIST's own form: two zeros, a type, the number of dimensions, each dimension, the numbers."""
    content = path.read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    zero, kind, ranks = struct.unpack(">HBB", content[:4])
    if zero or kind not in _IDX_TYPES or not ranks:
        raise ValueError(f"it begins with {content[:4].hex()}, and IDX with 0000, a type and a number of dimensions")
    shape = struct.unpack(f">{ranks}I", content[4 : 4 + 4 * ranks])
    numbers = np.frombuffer(content[4 + 4 * ranks :], _IDX_TYPES[kind])
    if math.prod(shape) != len(numbers):
        raise ValueError(f"{counted(len(numbers), 'number')}, where {' x '.join(map(str, shape))} are announced")
    found: AnyArray = numbers.reshape(shape)
    return found


def _npz(path: Path, names: tuple[str, ...]) -> _Found:
    with np.load(path, allow_pickle=False) as content:
        of_inputs = [name for name in names if name in content]
        of_labels = [name for name in LABELS if name in content]
        if not of_inputs:
            raise ValueError(f"it has {', '.join(content) or 'no array'}, and none of {', '.join(names)}")
        return _Found(content[of_inputs[0]], content[of_labels[0]] if of_labels else None)


def _parquet(path: Path) -> _Found:
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
    except ArrowException as e:
        raise ValueError(str(e)) from e
    labels = np.asarray(table.column(COLUMN)) if COLUMN in table.column_names else None
    names = [name for name in table.column_names if name != COLUMN]
    if not names:
        return _Found(np.asarray(labels), labels)
    columns = [np.asarray(table.column(name).to_pylist()) for name in names]
    if any(column.dtype.kind not in "uif" for column in columns):
        raise ValueError("a column holds what is no number, or lists that differ in length")
    return _Found(columns[0] if len(columns) == 1 else np.stack(columns, axis=1), labels)


def _inputs(found: AnyArray, dims: tuple[int, ...], asked: TrainingSet) -> AnyArray:
    name = asked.named or asked.inputs
    if found.ndim < 2 or math.prod(found.shape[1:]) != math.prod(dims) or not len(found):
        has, wants = " x ".join(map(str, found.shape)), " x ".join(map(str, dims))
        raise ModelFileError(f"{FIELD}: {name} is {has}; the network takes samples x {wants}")
    if found.dtype.kind in "ui" and found.dtype != np.uint8:
        if found.min() < 0 or found.max() > 255:
            raise ModelFileError(f"{FIELD}: {name}: whole numbers from {found.min()} to {found.max()}; 0 to 255 fit")
        found = found.astype(np.uint8)
    found = found if found.dtype == np.uint8 else found.astype(np.float32)
    if not np.isfinite(found).all():
        raise ModelFileError(f"{FIELD}: {name} holds NaN or infinity")
    return np.ascontiguousarray(found.reshape(len(found), *dims))


def _labels(found: AnyArray | None, count: int, classes: int, asked: TrainingSet) -> AnyArray:
    if found is None:
        raise ModelFileError(
            f"{FIELD}: `cross_entropy` needs the class of each sample, and {asked.inputs} has none",
            remedy="give `labels`, or `loss: mean_squared_error`",
        )
    if found.shape != (count,) or found.dtype.kind not in "ui":
        wanted = counted(count, "class", "classes")
        raise ModelFileError(f"{FIELD}: labels of shape {found.shape}, type {found.dtype}; wanted: {wanted}")
    if found.min() < 0 or found.max() >= classes:
        raise ModelFileError(
            f"{FIELD}: classes from {found.min()} to {found.max()}; the network has {classes}, from 0 on"
        )
    return found.astype(np.uint8)


def _put(array: AnyArray, artifacts: Artifacts) -> str:
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        file = Path(temporary) / "set.npy"
        np.save(file, array)
        return artifacts.put(file)
