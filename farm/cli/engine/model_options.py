"""The model that a command is given: a file or a built-in network, with its sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farm.cli import completion
from farm.cli.output import argument, option

if TYPE_CHECKING:
    from kernels.frontend.input_file import Given
    from kernels.frontend.load import Size
    from kernels.ir.graph import Graph

ModelArgument = Annotated[
    Path | None, argument("MODEL", "ONNX or GGUF file, or the name of a built-in network.", show_default=False)
]
NetworkOption = Annotated[
    str | None, option("--network NAME", "Built-in network instead of a file.", autocompletion=completion.networks)
]
SeedOption = Annotated[int, option("--seed", "Seed of a built-in network's weights and of random inputs.")]
SizeOption = Annotated[
    list[str] | None,
    option(
        "--size, --constant NAME=N",
        "A size that the file leaves open, an input that is always this number, or a parameter of a built-in "
        "network; may be given again. Sizes that the input has need none.",
        show_default=False,
    ),
]
BatchOption = Annotated[
    int | None,
    option("--batch", "Size of the first dimension, where the file leaves it open.", min=1, show_default="1"),
]


def load_graph(
    model: Path | None,
    network: str | None,
    seed: int,
    size: Sequence[str] | None = None,
    batch: int | None = None,
    given: Given | None = None,
) -> Graph:
    """The graph that a command was given, with the sizes asked for or `given` by an input.

    A word without a suffix that is no file is a built-in network's name. Raises UsageError for both a file and a
    network or neither, and the compiler's errors.
    """
    from kernels.frontend.input_file import NOTHING_GIVEN
    from kernels.frontend.load import load_workload

    if (model is None) == (network is None):
        raise typer.BadParameter("give either a MODEL or --network NAME (`farm networks` lists them)")
    if model is not None and not model.suffix and len(model.parts) == 1 and not model.is_file():
        network, model = model.name, None
    return load_workload(
        network=network, onnx=model, seed=seed, batch=batch, sizes=sizes_in(size or ()), given=given or NOTHING_GIVEN
    )


def sizes_in(words: Sequence[str]) -> dict[str, Size]:
    """The sizes of `NAME=N`, or of a list `NAME=N,N`. Raises UsageError."""
    sizes: dict[str, Size] = {}
    for word in words:
        name, _, value = word.rpartition("=")
        try:
            numbers = tuple(int(each) for each in value.split(","))
        except ValueError:
            numbers = ()
        if not name or not numbers:
            raise typer.BadParameter(f"{word!r}: give a name and a whole number, as height=320", param_hint="--size")
        if name in sizes:
            raise typer.BadParameter(f"{name!r} was given twice", param_hint="--size")
        sizes[name] = numbers[0] if len(numbers) == 1 else numbers
    return sizes
