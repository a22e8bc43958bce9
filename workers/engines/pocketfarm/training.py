"""The outcome of a training: the network with its new weights, asked about the samples that were held out."""

from __future__ import annotations

import math
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import PlanError
from kernels.frontend.networks.export import to_onnx
from kernels.ir.graph import Graph
from kernels.reference import evaluate
from kernels.training import read_checkpoint, trained
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import DeviceSick
from orchestrator.model.experiment import Training
from orchestrator.model.job import Cell
from orchestrator.model.record import Reconstruction, TrainedModel
from workers.engines.pocketfarm.plans.plan_store import Plans, StoredPlan

MOST = 10_000
"""Samples that the host asks at most, the first of them."""
SHOWN, MOST_PIXELS = 8, 4096
"""Reconstructions that a record has, and the numbers of one at most."""

Floats = npt.NDArray[np.float32]


def trained_model(
    cell: Cell, plans: Plans, stored: StoredPlan, checkpoint: Path, artifacts: Artifacts
) -> tuple[TrainedModel, tuple[Reconstruction, ...]]:
    """Return the trained model with what it makes of a few samples, where it was trained to answer with its input.

    Raises DeviceSick where the weights are no finite numbers' file of this plan.
    """
    graph = plans.models.graph(cell.workload, cell.batch)
    try:
        found = trained(graph, read_checkpoint(checkpoint, plan=stored.plan_hash))
    except PlanError as e:
        raise DeviceSick(f"the checkpoint did not arrive as it was written: {e}") from e
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        file = Path(temporary) / "trained.onnx"
        single = plans.models.graph(cell.workload, 1)
        single = replace(single, constants={**single.constants, **found.constants})
        to_onnx(single, file, any_batch=True)
        onnx = artifacts.put(file)
    sha256 = artifacts.put(checkpoint)
    confusion = _confusion(cell, plans, found)
    model = TrainedModel(
        onnx_sha256=onnx,
        checkpoint_sha256=sha256,
        evaluated=int(confusion.sum()),
        wrong=int(confusion.sum() - np.trace(confusion)),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )
    return model, tuple(_reconstructions(cell, plans, single))


def _confusion(cell: Cell, plans: Plans, graph: Graph) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Right class x answer. Empty without classes."""
    training = cell.workload.training
    assert training is not None
    inputs, labels = plans.models.training_set(cell.workload)
    if labels is None:
        return np.zeros((0, 0), np.int64)
    name, (output,) = graph.inputs[0], graph.outputs
    batch, classes = graph.shapes[output]
    counts = np.zeros((classes, classes), np.int64)
    places = training.dataset.evaluated[:MOST]
    for start in range(places.start, places.stop, batch):
        own = slice(start, min(start + batch, places.stop))
        filled = np.zeros(graph.shapes[name], np.float32)
        filled[: own.stop - own.start] = _scaled(training, inputs[own])
        answers = evaluate(graph, {name: filled}, dtype=np.float32)[output][: own.stop - own.start].argmax(axis=1)
        np.add.at(counts, (labels[own], answers), 1)
    return counts


def _reconstructions(cell: Cell, plans: Plans, graph: Graph) -> Iterator[Reconstruction]:
    """Yield the first held out, by the graph for one of them; none where a sample is no picture, or too large a one."""
    training = cell.workload.training
    assert training is not None
    name, (output,) = graph.inputs[0], graph.outputs
    dims = _picture(graph.shapes[name][1:])
    if training.loss != "mean_squared_error" or dims is None:
        return
    inputs, _ = plans.models.training_set(cell.workload)
    places = training.dataset.evaluated[:SHOWN]
    given = _scaled(training, inputs[places.start : places.stop])
    if not len(given):  # so few samples that none was held out
        return
    low, high = min(0.0, float(given.min())), max(1.0, float(given.max()))
    for one in given:
        answer = evaluate(graph, {name: one[None]}, dtype=np.float32)[output][0]
        difference = float(np.sqrt(np.mean(np.square(answer - one))))
        if math.isfinite(difference):
            pictures = (_pixels((each - low) / (high - low), dims) for each in (one, answer))
            yield Reconstruction(height=dims[1], width=dims[2], difference=difference,
                                 **dict(zip(("given", "answered"), pictures, strict=True)))  # fmt: skip


def _picture(dims: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Channels, height and width: of an image, or of a square's pixels in one row."""
    side = math.isqrt(dims[0])
    found = (1, side, side) if dims == (side * side,) else dims
    is_image = len(found) == 3 and found[0] in (1, 3) and math.prod(found) <= MOST_PIXELS
    return (found[0], found[1], found[2]) if is_image else None


def _pixels(values: Floats, dims: tuple[int, int, int]) -> str:
    """0 to 1 as bytes, colours of a pixel side by side."""
    rounded = np.rint(values.clip(0, 1) * 255).astype(np.uint8)
    return b64encode(rounded.reshape(dims).transpose(1, 2, 0).tobytes()).decode()


def _scaled(training: Training, inputs: npt.NDArray[Any]) -> Floats:
    return inputs.astype(np.float32) * np.float32(training.dataset.scale or 1.0)
