"""Make and cache what a cell computes, whatever engine runs it: its graph, its inputs, the outputs to expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.frontend.examples import Examples, given_by
from kernels.frontend.input_file import NOTHING_GIVEN, Arrays, Given, read_arrays
from kernels.frontend.load import load_inputs, load_workload, random_inputs
from kernels.ir.graph import Graph
from kernels.options import HALF
from kernels.reference import evaluate, roundings
from kernels.training import LABELS
from orchestrator.model.base import content_hash
from orchestrator.model.device import Precision
from orchestrator.model.experiment import Workload
from workers.files.host_files import HostFiles

from .single_flight_cache import SingleFlightCache
from .texts import Texts


class Models:
    """Caches of one host process, shared by its threads and engines."""

    def __init__(self, files: HostFiles) -> None:
        self._files = files
        self.texts = Texts(files)
        self._graphs: SingleFlightCache[Graph] = SingleFlightCache(8)
        self._inputs: SingleFlightCache[Arrays] = SingleFlightCache(16)
        self._sets: SingleFlightCache[Examples] = SingleFlightCache(4)
        self._references: SingleFlightCache[Arrays] = SingleFlightCache(16)
        self._rounded: tuple[SingleFlightCache[Arrays], ...] = (SingleFlightCache(16), SingleFlightCache(16))
        """The rounded references in single precision, and in halves."""

    def graph(self, workload: Workload, batch: int | None = None) -> Graph:
        """`batch`: size of each input's first dimension; None: as the model has it."""
        return self._graphs.get(_key(workload, batch), lambda: self._load(workload, batch))

    def inputs(self, workload: Workload, batch: int | None = None, examples: range | None = None) -> Arrays:
        """Port name -> array: the workload's file, or seeded random numbers.

        `examples`: those of the workload's set instead, for as many inferences as they make; each port then has
        one more dimension in front. Raises SpecError, ModelFileError, InputError.
        """
        if examples is not None:
            return self._examples(workload, batch).inferences(examples)
        return self._inputs.get(_key(workload, batch), lambda: self._load_inputs(workload, batch))

    def reference(self, workload: Workload, batch: int | None = None, examples: range | None = None) -> Arrays:
        """Output name -> what NumPy makes of the same inputs, those of the first inference of several."""
        return self._evaluated(self._references, workload, batch, examples)

    def rounded(
        self, precision: Precision, workload: Workload, batch: int | None = None, examples: range | None = None
    ) -> Arrays:
        """Output name -> the same in single precision, or stored in halves: how much rounding alone loses."""
        return self._evaluated(
            self._rounded[precision in HALF], workload, batch, examples, **roundings(precision.value)
        )

    def _evaluated(
        self, kept: SingleFlightCache[Arrays], workload: Workload, batch: int | None, examples: range | None, **how: Any
    ) -> Arrays:
        def make() -> Arrays:
            inputs = dict(self.inputs(workload, batch, examples[: batch or 1] if examples else None))
            first = inputs if examples is None else {name: value[0] for name, value in inputs.items()}
            return evaluate(self.graph(workload, batch), first, **how)

        return kept.get(f"{_key(workload, batch)} {examples}", make)

    def _examples(self, workload: Workload, batch: int | None) -> Examples:
        """Kept open: the file is verified once."""
        dataset = workload.dataset
        assert dataset is not None
        return self._sets.get(
            _key(workload, batch),
            lambda: Examples(
                self.graph(workload, batch),
                self.file(dataset.inputs, dataset.inputs_sha256),
                mean=dataset.mean,
                scale=dataset.scale,
            ),
        )

    def _load(self, workload: Workload, batch: int | None) -> Graph:
        onnx = self.file(workload.onnx, workload.onnx_sha256) if workload.onnx else None
        given = self._given(workload) if onnx else NOTHING_GIVEN
        sizes = workload.every_size
        return load_workload(
            network=workload.network, onnx=onnx, seed=workload.seed, batch=batch, sizes=sizes, given=given
        )

    def _given(self, workload: Workload) -> Given:
        """The sizes that a workload's input, or its examples, have."""
        if (dataset := workload.dataset) is not None:
            return given_by(self.file(dataset.inputs, dataset.inputs_sha256))
        if workload.input is None:
            return NOTHING_GIVEN
        path = self.file(workload.input, workload.input_sha256)
        return Given.of(read_arrays(path), path)

    def _load_inputs(self, workload: Workload, batch: int | None) -> Arrays:
        graph = self.graph(workload, batch)
        if workload.training is not None:
            return self._whole_set(workload, graph)
        if workload.input is None:
            return random_inputs(graph, workload.seed)
        return load_inputs(graph, self.file(workload.input, workload.input_sha256))

    def training_set(self, workload: Workload) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
        """All its samples, and their classes where there are any. Raises ModelFileError, FileUnavailable."""
        assert workload.training is not None
        dataset = workload.training.dataset
        inputs, labels = (
            np.load(self._files.path(each), mmap_mode="r") if each else None
            for each in (dataset.inputs_sha256, dataset.labels_sha256)
        )
        assert inputs is not None
        return inputs, labels

    def _whole_set(self, workload: Workload, graph: Graph) -> Arrays:
        """Return the arrays that are trained with, by the plan's ports."""
        inputs, labels = self.training_set(workload)
        assert workload.training is not None
        count = workload.training.dataset.trained
        return {graph.inputs[0]: inputs[:count]} | ({} if labels is None else {LABELS: labels[:count]})

    def file(self, name: str, sha256: str | None) -> Path:
        """Return the submitted content, not what the file may have become since."""
        return self._files.path(sha256) if sha256 else Path(name)


def _key(workload: Workload, batch: int | None) -> str:
    return f"{content_hash(workload)} {batch}"
