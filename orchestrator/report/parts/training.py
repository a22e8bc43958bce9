"""The part of a report about trainings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.analysis.statistics import Summary
from orchestrator.figures import BlockFigures, Trained
from orchestrator.figures.one_block import is_short
from orchestrator.report import wording
from orchestrator.report.section import Column, Section

NOTE = (
    "Of the newest training of each configuration. Loss and error are means over an epoch, while it was trained; the "
    "last error is of the trained network, on samples that were held out, or where none were on all. Times are of an "
    "epoch of the last stage, of all layers together, and so is the energy; both are medians over blocks, as in the "
    "results. A training that went on after a lost attempt shows the epochs of all attempts; its times and its "
    "energy are of the last one."
)


STAGES_NOTE = (
    "Of the newest training of each configuration, means over the epochs of a stage, with what lies between them. "
    "Energy is that above the idle power: power times time. `all` is one epoch of each stage, study A's one epoch."
)

MOST_CLASSES = 20
"""The most classes of a table of confusions."""


def newest(blocks: Sequence[BlockFigures]) -> Iterator[tuple[BlockFigures, Trained]]:
    """Yield each device's and cell's newest block that trained."""
    found: dict[tuple[str, str], tuple[BlockFigures, Trained]] = {}
    for block in blocks:
        if block.trained is not None:
            found[block.serial, block.cell_id] = (block, block.trained)
    yield from (found[key] for key in sorted(found))


def _in_order(
    blocks: Sequence[BlockFigures], known: Mapping[tuple[str, str], Summary]
) -> list[tuple[BlockFigures, Trained]]:
    """Return the newest trainings in the order of the table of results."""
    places = {key: place for place, key in enumerate(known)}
    return sorted(newest(blocks), key=lambda each: places[each[0].serial, each[0].cell_id])


def section(blocks: Sequence[BlockFigures], summaries: Sequence[Summary]) -> Section:
    names = wording.naming(summaries)
    known: Mapping[tuple[str, str], Summary] = {(each.serial, each.cell_id): each for each in summaries}
    rows = []
    for block, trained in _in_order(blocks, known):
        summary, last, model = known[block.serial, block.cell_id], trained.epochs[-1], trained.model
        energy, times = summary.energy_per_inference, summary.latency or block.times
        rows.append(
            (
                wording.device(block), wording.cell(summary, names), str(trained.count), _loss(last.loss),
                _share(last.error), _share(model.error if model else None), str(model.evaluated) if model else "",
                wording.figure(times.median_ms, None, getattr(times, "unresolved", None))[0] if times else "",
                *wording.energy(energy),
                model.onnx_sha256[:12] if model else "not trained to its end",
            )
        )  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("epochs", True), Column("loss", True),
        Column("error %", True), Column("trained error %", True), Column("of samples", True, True),
        Column("ms / epoch", True), Column("energy / epoch", True), Column("interval", True, True), Column("model"),
    )  # fmt: skip
    return Section("training", "Training", NOTE, columns, tuple(rows))


def stages(blocks: Sequence[BlockFigures], summaries: Sequence[Summary]) -> Section:
    """One epoch of each stage, and of all together: the energy of a row is its power times its time."""
    names = wording.naming(summaries)
    known: Mapping[tuple[str, str], Summary] = {(each.serial, each.cell_id): each for each in summaries}
    rows = [
        (
            wording.device(block), wording.cell(known[block.serial, block.cell_id], names), each.name, str(each.epochs),
            *(_told(each.epoch_ms), *(short or _told(value) for value in (each.net_power_w, each.epoch_j))),
        )
        for block, trained in _in_order(blocks, known)
        for short in ["too short" if block.energy and is_short(block.energy) else ""]
        for each in (*trained.stages, *([trained.whole] if trained.whole and len(trained.stages) > 1 else []))
    ]  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("stage"), Column("epochs", True), Column("ms / epoch", True),
        Column("W above idle", True), Column("J / epoch", True),
    )  # fmt: skip
    return Section("training-stages", "One epoch by stage", STAGES_NOTE, columns, tuple(rows))


def confusions(blocks: Sequence[BlockFigures], summaries: Sequence[Summary]) -> Iterator[Section]:
    """Yield trained networks' confusions: how often they took which class for which; those that answer alike once."""
    names = wording.naming(summaries)
    known = {(each.serial, each.cell_id): each for each in summaries}
    alike: dict[tuple[tuple[int, ...], ...], list[BlockFigures]] = {}
    for block, trained in _in_order(blocks, known):
        if trained.model is not None and 0 < len(trained.model.confusion) <= MOST_CLASSES:
            alike.setdefault(trained.model.confusion, []).append(block)
    for number, (matrix, (block, *others)) in enumerate(alike.items()):
        rows = tuple((str(right), *(str(count) if count else "" for count in row)) for right, row in enumerate(matrix))
        columns = (Column("right", True), *(Column(str(answer), True) for answer in range(len(matrix))))
        more = f" and {len(others)} more that answer alike" if others else ""
        of = f"{wording.device(block)} {wording.cell(known[block.serial, block.cell_id], names)}{more}"
        title = f"{of}: answers by right class"
        yield Section(
            f"confusion-{number}", title, "A row is a right class, a column what was answered.", columns, rows
        )


def _told(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}" if value < 1e4 else f"{value:.0f}"


def _loss(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
