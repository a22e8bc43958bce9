"""Checks of an experiment's models, inputs and sets before it is stored: as a worker will read them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from kernels.errors import CompileError
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.errors import ModelFileError, SpecError
from orchestrator.model.experiment import MOST_SHARDS, Dataset, Matrix
from orchestrator.model.quantity import counted

from .gather import Gathered, told
from .labels import read_labels

if TYPE_CHECKING:
    from kernels.ir.graph import Graph


def check_network(name: str | None, field: str) -> None:
    """Raise SpecError for a network that is not built in."""
    from kernels.frontend.networks import BUILT_IN, known_words

    if name is not None and name not in BUILT_IN:
        near = get_close_matches(name, BUILT_IN, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise SpecError(f"{field}: no built-in network is called `{name}`; {hint}known: {known_words()}")


def checked_graph(found: Gathered, batch: int | None) -> Graph:
    """Return the model's graph, which can take the workload's input. Raises SpecError, ModelFileError."""
    from kernels.frontend.load import as_inputs

    workload = found.workload
    try:
        graph = found.graph(batch)
    except CompileError as e:
        if workload.parameters:
            raise SpecError(f"workload.parameters: {e}") from e
        raise ModelFileError(f"workload: {e}") from e
    if found.arrays is not None:
        path = Path(str(workload.input))
        with told("workload", path, path.name):
            as_inputs(graph, found.arrays, path)
    return graph


def check_decoder(found: Gathered, capacity: int, artifacts: Artifacts, sequences: Sequence[int] = (1,)) -> None:
    """Raise ModelFileError for a file that is no decoder of a language model with its cache, or one whose cache cannot
    hold `capacity` tokens, or which cannot take so many `sequences` side by side, or whose vocabulary lacks one of the
    prompt. Of a GGUF file its head is read alone."""
    from kernels.frontend.gguf import check_gguf
    from kernels.frontend.onnx import import_decoder
    from kernels.frontend.tokens import check_tokens, read_tokens

    name, sha256 = str(found.workload.language_model), str(found.workload.language_model_sha256)
    path = Path(name) if found.model else artifacts.path(sha256)
    with told("workload.language_model", path, name):
        if found.model is None:
            words = check_gguf(path, capacity)
        else:
            words = max(import_decoder(found.model, capacity, 1, each).words for each in sequences)
    if (prompt := found.workload.prompt_sha256) is not None:
        with told("workload", path, name):
            check_tokens(read_tokens(artifacts.path(prompt)), words, "prompt")


def check_examples(found: Gathered, graph: Graph, batch: int | None) -> int:
    """Return the number of examples of a set that a network can take, and answers. Raises ModelFileError."""
    from kernels.frontend.examples import Examples, examples_in

    model, dataset = found.workload.label, found.workload.dataset
    assert dataset is not None and found.examples is not None
    with told("workload.dataset", found.examples, dataset.inputs):
        size = len(Examples(graph, found.examples, mean=dataset.mean, scale=dataset.scale))
    together = examples_in(graph)
    if together != (batch or 1):
        raise ModelFileError(
            f"workload.dataset: {model} takes {counted(together, 'example')} in one inference",
            remedy=f"give `matrix: {{batch: [{together}]}}`, and a `shard` that is a multiple of it",
        )
    if len(graph.outputs) != 1:
        raise ModelFileError(
            f"workload.dataset: {model} has {counted(len(graph.outputs), 'output')} ({', '.join(graph.outputs)}); "
            "predictions are read from one",
            remedy="export the model with its scores as the only output",
        )
    scores = prod(graph.shapes[graph.outputs[0]])
    if scores % together or scores < 2 * together:
        raise ModelFileError(
            f"workload.dataset: {model} gives {counted(scores, 'number')} for {counted(together, 'example')}: these "
            "are no scores of classes",
            remedy="a set goes with a network that gives two scores or more for each example",
        )
    return size


def check_labels(dataset: Dataset, artifacts: Artifacts) -> None:
    """Raise ModelFileError for a kept file of labels that does not go with its set."""
    if dataset.labels is None or dataset.labels_sha256 is None:
        return
    stored = artifacts.path(dataset.labels_sha256)
    try:
        labels = read_labels(stored)
    except ModelFileError as e:
        raise ModelFileError(f"workload.dataset: {e}".replace(str(stored), dataset.labels)) from e
    if len(labels) != dataset.size:
        raise ModelFileError(
            f"workload.dataset: {dataset.labels} has {counted(len(labels), 'label')}, {dataset.inputs} "
            f"{counted(dataset.size or 0, 'example')}"
        )


def shards(dataset: Dataset) -> int:
    """Return how many blocks a set takes. Raises SpecError for too many."""
    if dataset.shards <= MOST_SHARDS:
        return dataset.shards
    least = -(-(dataset.size or 0) // MOST_SHARDS)
    raise SpecError(
        f"workload.dataset: {counted(dataset.size or 0, 'example')} in shards of {dataset.shard} are "
        f"{counted(dataset.shards, 'block')}",
        remedy=f"an experiment has at most {MOST_SHARDS} blocks: give `shard: {least}` or more",
    )


def check_last_shard(axes: Matrix, dataset: Dataset) -> None:
    """Raise SpecError for a pipeline of one inference: it has nothing to overlap with, and the agent refuses it."""
    last = len(dataset.examples(dataset.shards - 1))
    piped = set(axes.pipeline or ()) - {"none"}
    if piped and any(last // batch < 2 for batch in axes.batch or (1,)):
        raise SpecError(
            f"workload.dataset: the last shard has {last} of {counted(dataset.size or 0, 'example')}, "
            "too few for a pipeline",
            remedy="give another `shard`, so that the last one has two inferences at least",
        )
