"""`farm quantize`: a model with layers in 8 bits, calibrated by a set of examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from farm.cli.output import JsonOption, argument, counted, option, out, print_json
from orchestrator.model import quantity
from orchestrator.model.errors import ModelFileError

if TYPE_CHECKING:
    import numpy as np

    from kernels.frontend.examples import Examples
    from kernels.ir.graph import Array, Graph


def quantize(
    model: Annotated[Path, argument("MODEL.onnx", "ONNX file with weights in fp32.")],
    data: Annotated[Path, option("--data SET.npy", "Examples, as farm dataset writes them.")],
    output: Annotated[Path, option("--output, -o OUT.onnx", "File to write the model to.")],
    labels: Annotated[
        Path | None, option("--labels FILE", "Text file with one class number per line; adds the accuracy.")
    ] = None,
    calibrate: Annotated[
        int, option("--calibrate N", "Number of examples from which the ranges are taken.", min=1)
    ] = 100,
    first: Annotated[
        int | None, option("--first N", "Compare only the first N examples.", min=1, show_default="all")
    ] = None,
    mean: Annotated[
        list[float] | None, option("--mean", "Subtracted from each number; one value, or one per channel.")
    ] = None,
    scale: Annotated[
        list[float] | None, option("--scale", "Multiplied with each number; one value, or one per channel.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Quantize a model: weights to int8 by channels, the layers' inputs to uint8.

    The new model has QuantizeLinear and DequantizeLinear nodes, which other engines can run too. The reference then
    computes both models on this machine, which is slow, and the command prints how many predictions agree, with the
    95 % interval.

    Example: `farm quantize model.onnx --data validation.npy --labels validation.labels.txt -o model.int8.onnx`
    """
    from kernels.frontend.examples import Examples, examples_in, given_by
    from kernels.frontend.onnx import import_model, load_onnx
    from kernels.frontend.onnx.reading.model_file import read_model
    from kernels.frontend.quantize import Quantizer, check_quantizable, ranges
    from orchestrator.analysis.agreement import proportion
    from orchestrator.report.wording import percent, percent_interval

    if output.exists() and model.exists() and output.samefile(model):
        raise ModelFileError(
            f"{output} is the model itself, whose weights in fp32 would be lost", remedy="give another name with -o"
        )
    file = read_model(model)
    check_quantizable(file)
    graph = import_model(file, given=given_by(data))
    examples = Examples(graph, data, mean=mean or (0.0,), scale=scale or (1.0,))
    batch = examples_in(graph)
    compared = _whole(min(first or len(examples), len(examples)), batch)
    wanted = _labels(labels, examples)
    calibrated = _whole(min(calibrate, len(examples)), batch)
    quantizer = Quantizer(file, ranges(_activations("ranges", graph, examples, calibrated)))
    partial = output.with_name(f".{output.name}.part")
    try:
        quantizer.write(partial)
        after = _predictions("in 8 bits", load_onnx(partial, given=examples.given), examples, compared)
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
    before = _predictions("as it was", graph, examples, compared)
    changed = before != after
    found: dict[str, Any] = {
        "model": output,
        "layers": len(quantizer.layers),
        "bytes_before": quantizer.bytes_before,
        "bytes_after": output.stat().st_size,
        "examples": len(before),
        "agree": int((~changed).sum()),
        "agreement": proportion(int((~changed).sum()), len(before)),
    }
    if wanted is not None:
        right, still = before == wanted[: len(before)], after == wanted[: len(before)]
        found |= {"right_before": int(right.sum()), "right_after": int(still.sum())}
        found |= {"became_right": int((still & ~right).sum()), "became_wrong": int((right & ~still).sum())}
    if as_json:
        print_json(found)
        return
    agreement = found["agreement"]
    told = {**found, "agreement": f"{percent(agreement)} % {percent_interval(agreement)}"}
    out().print("\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in told.items()), soft_wrap=True)


def _whole(count: int, batch: int) -> range:
    """Return the numbers of `count` examples, rounded up to whole batches."""
    return range(-(-count // batch) * batch)


def _labels(path: Path | None, examples: Examples) -> np.ndarray[Any, Any] | None:
    import numpy as np

    from orchestrator.acts.submission.labels import read_labels

    if path is None:
        return None
    found = read_labels(path)
    if len(found) != len(examples):
        raise ModelFileError(
            f"{path} has {quantity.counted(len(found), 'label')} for {quantity.counted(len(examples), 'example')}",
            remedy="give one class number an example",
        )
    return np.asarray(found)


def _activations(what: str, graph: Graph, examples: Examples, which: range) -> Iterator[Mapping[str, Array]]:
    """Yield the activations of one inference after another, with a progress bar."""
    from kernels.frontend.examples import examples_in
    from kernels.frontend.quantize import activations

    with counted() as progress:
        total = len(which) // examples_in(graph)
        yield from progress.track(activations(graph, examples, which), total=total, description=what)


def _predictions(what: str, graph: Graph, examples: Examples, which: range) -> np.ndarray[Any, Any]:
    """The best class of each example."""
    import numpy as np

    from kernels.frontend.examples import examples_in

    scores = [found[graph.outputs[0]] for found in _activations(what, graph, examples, which)]
    return np.concatenate([each.reshape(examples_in(graph), -1).argmax(1) for each in scores])
