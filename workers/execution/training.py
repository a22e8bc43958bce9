"""What came out of a training: the network with its new weights, asked about the samples that were held out."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from kernels.errors import PlanError
from kernels.frontend.networks.export import to_onnx
from kernels.ir.graph import Graph
from kernels.reference import evaluate
from kernels.training import read_checkpoint, trained
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.errors import DeviceSick
from orchestrator.model.job import Cell
from orchestrator.model.record import TrainedModel
from workers.plans.plan_store import Plans, StoredPlan

MOST = 10_000
"""Samples that the host asks at most, the first of them."""


def trained_model(cell: Cell, plans: Plans, stored: StoredPlan, checkpoint: Path, artifacts: Artifacts) -> TrainedModel:
    """Raises DeviceSick where the weights are no finite numbers' file of this plan."""
    graph = plans.graph(cell.workload, cell.batch)
    try:
        found = trained(graph, read_checkpoint(checkpoint, plan=stored.plan_hash))
    except PlanError as e:
        raise DeviceSick(f"the checkpoint did not arrive as it was written: {e}") from e
    with tempfile.TemporaryDirectory(prefix="pocketfarm-") as temporary:
        file = Path(temporary) / "trained.onnx"
        single = plans.graph(cell.workload, 1)
        to_onnx(replace(single, constants={**single.constants, **found.constants}), file)
        onnx = artifacts.put(file)
    sha256 = artifacts.put(checkpoint)
    confusion = _confusion(cell, plans, found)
    return TrainedModel(
        onnx_sha256=onnx,
        checkpoint_sha256=sha256,
        evaluated=int(confusion.sum()),
        wrong=int(confusion.sum() - np.trace(confusion)),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def _confusion(cell: Cell, plans: Plans, graph: Graph) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Right class x answer. Empty without classes."""
    training = cell.workload.training
    assert training is not None
    inputs, labels = plans.training_set(cell.workload)
    if labels is None:
        return np.zeros((0, 0), np.int64)
    name, (output,) = graph.inputs[0], graph.outputs
    batch, classes = graph.shapes[output]
    counts = np.zeros((classes, classes), np.int64)
    places = training.dataset.evaluated[:MOST]
    for start in range(places.start, places.stop, batch):
        own = slice(start, min(start + batch, places.stop))
        filled = np.zeros(graph.shapes[name], np.float32)
        filled[: own.stop - own.start] = inputs[own] * np.float32(training.dataset.scale or 1.0)
        answers = evaluate(graph, {name: filled}, dtype=np.float32)[output][: own.stop - own.start].argmax(axis=1)
        np.add.at(counts, (labels[own], answers), 1)
    return counts
