"""`farm dataset`: a set of examples from images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from farm.cli.output import JsonOption, argument, counted, log, option, out, print_json
from orchestrator.model import quantity
from orchestrator.model.errors import ModelFileError

ChannelsWord = Literal["rgb", "bgr", "gray"]


def dataset(
    images: Annotated[Path, argument("FOLDER", "Folder of images, at any depth.")],
    output: Annotated[Path, option("--output, -o SET.npy", "File to write the set to.")],
    size: Annotated[int, option("--size", "Edge of an input in pixels, e.g. 227.", min=1)],
    resize: Annotated[
        int | None,
        option(
            "--resize",
            "Length in pixels to which the shorter edge is resized before the cut.",
            show_default="8/7 of --size",
        ),
    ] = None,
    channels: Annotated[ChannelsWord, option("--channels", "Channels and their order.")] = "rgb",
    labels: Annotated[
        Path | None, option("--labels FILE", "Text file of lines `IMAGE CLASS`: the images to take, in this order.")
    ] = None,
    first: Annotated[int | None, option("--first N", "Only the first N images.", min=1)] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a set of examples from images, for `workload.dataset` of an experiment.

    Each image is turned upright, resized, cut to a square, and stored as bytes; give mean and scale in the experiment
    file. With --labels, it also writes a text file of class numbers. Without --labels, if the images lie in one folder
    for each class, these folders are the classes 0, 1, 2, ... in the order of their names.

    Example: `farm dataset val/ --labels val.txt --size 227 --resize 256 --channels bgr --first 10000 -o val.npy`
    """
    from kernels.frontend.image_sets import Channels, Preparation, open_set

    prepare = Preparation(size, resize if resize is not None else round(size * 8 / 7), Channels(channels))
    chosen = list(_chosen(images, labels))[:first]
    if not chosen:
        raise ModelFileError(f"{images}: there are no images", remedy="give the folder that holds them")
    partial = output.with_name(f".{output.name}.part")
    try:
        content = open_set(partial, len(chosen), prepare.shape)
        with counted() as progress:
            task = progress.add_task("images", total=len(chosen))
            for index, (path, _) in enumerate(chosen):
                content[index] = prepare(path)
                progress.advance(task)
        content.flush()
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)
    written = _write_labels(output, [label for _, label in chosen])
    if as_json:
        print_json({"inputs": output, "labels": written, "examples": len(chosen), "shape": list(prepare.shape)})
        return
    shape = " x ".join(map(str, prepare.shape))
    log().print(
        f"wrote {quantity.counted(len(chosen), 'example')} of {shape}" + ("" if written else "; there are no labels"),
        soft_wrap=True,
    )
    lines = ["workload:", "  dataset:", f"    inputs: {output}", *([f"    labels: {written}"] if written else [])]
    out().print("\n".join(lines), soft_wrap=True)


def _chosen(folder: Path, labels: Path | None) -> Iterator[tuple[Path, int | None]]:
    """Images with their classes, in order."""
    from kernels.frontend.image_sets import images_in
    from orchestrator.acts.submission.labels import read_listing

    if not folder.is_dir():
        raise ModelFileError(f"{folder} is no folder", remedy="give the folder that holds the images")
    if labels is not None:
        for number, (name, label) in enumerate(read_listing(labels), 1):
            if not (folder / name).is_file():
                raise ModelFileError(f"{labels}: image {number}, `{name}`, is not in {folder}")
            yield folder / name, label
        return
    found = images_in(folder)
    classes = {name: index for index, name in enumerate(sorted({path.relative_to(folder).parts[0] for path in found}))}
    by_folder = all(len(path.relative_to(folder).parts) > 1 for path in found) and len(classes) > 1
    for path in found:
        yield path, classes[path.relative_to(folder).parts[0]] if by_folder else None


def _write_labels(output: Path, labels: list[int | None]) -> Path | None:
    if any(label is None for label in labels):
        return None
    path = output.with_suffix(".labels.txt")
    path.write_text("".join(f"{label}\n" for label in labels))
    return path
