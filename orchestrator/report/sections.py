"""The parts of a report beside the results, as plain tables: the same for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.analysis.comparison.cell_blocks import Ratio
from orchestrator.analysis.statistics import CanaryWord, Figure, Summary, Throughput, Verdict, setup
from orchestrator.analysis.stopping_rule import Need
from orchestrator.model.record import ConditionProof

from . import wording
from .comparisons import backends, pays_from, published
from .content import Content
from .parts import answers, limits, predictions, stopped, sustained, told, training
from .section import Column, Section
from .wording import EnergyRow

SHOWN_REASONS = 2
SETUP = "setup"
SHOWN_SHARE = 0.01
"""The step's share of the set-up time."""
SETUP_IN_TERMINAL = ("program build", "pipelines", "transfers")


def sections(content: Content) -> list[Section]:
    """Every part that has something to say."""
    found = (
        stopped.section(content.stopped),
        *predictions.sections(content.agreements),
        *_energies(content.summaries),
        _throughput(content.summaries),
        told.tokens(content.summaries),
        told.further(content.summaries),
        answers.section(content.answers),
        backends(content),
        pays_from(content),
        limits.section(content.limits),
        training.section(content.blocks, content.summaries),
        training.stages(content.blocks, content.summaries),
        *(() if content.limits else training.confusions(content.blocks, content.summaries)),
        *published(content),
        _cold(content.summaries),
        _setup(content.summaries),
        sustained.section(content.summaries),
        _stability(content.summaries),
        _canaries(content),
        _decisions(content),
        _silent(content),
        _invalid(content.summaries),
        _failed(content.summaries),
        _conditions(content.summaries),
    )
    return [section for section in found if section.rows]


def _where(summary: Summary, names: wording.Naming) -> tuple[str, str]:
    return wording.device(summary), wording.cell(summary, names)


def _energy_columns(per: str) -> tuple[Column, ...]:
    return (
        Column("device"), Column("configuration"), Column(f"energy/{per}", True), Column("interval", True),
        Column("same device", True, True), Column("gross", True, True), Column("load power", True),
        Column("idle power", True, True), Column("blocks", True), Column("gain"),
    )  # fmt: skip


INTERVALS = "Intervals are at 95 % or more unless another level stands beside them."

NEEDS_REST = ("gross", "idle power")
"""Columns that say nothing where no block rested: the energy itself is gross, and the idle power is not known."""


def _energies(summaries: Sequence[Summary]) -> Iterator[Section]:
    per = wording.sample(summaries).replace("inference", "inf.")
    names, columns = wording.naming(summaries), _energy_columns(per)
    for index, (title, rows) in enumerate(wording.energy_groups(summaries).items()):
        basis = wording.energy_basis(row.use.reported for row in rows)
        net = any(row.use.idle_power_w for row in rows)
        shown = [i for i, column in enumerate(columns) if net or column.name not in NEEDS_REST]
        texts = [(row.summary.serial, _where(row.summary, names)[1], *_energy(row)) for row in rows]
        yield Section(
            name=f"energy-{index}",
            title=f"Energy by {title}",
            note=f"{basis} {INTERVALS} Load power is gross. The first interval "
            "holds the gain's uncertainty, `same device` is for comparisons on the same device. `relative`: the gain "
            "is not known, other devices do not compare.",
            columns=tuple(columns[i] for i in shown),
            rows=tuple(tuple(row[i] for i in shown) for row in texts),
            terminal_note=f"{basis} {INTERVALS}",
        )


def _energy(row: EnergyRow) -> tuple[str, ...]:
    use, reported_use = row.use, row.use.reported
    value, interval = wording.energy(reported_use)
    figure = reported_use.figure_j if reported_use else None
    same_device = wording.ends(figure.within, figure.value, "J") if figure and figure.value is not None else ""
    return (
        value, interval, same_device, _figure(use.gross_per_inference_j, "J"), _figure(use.load_power_w, "W"),
        _figure(use.idle_power_w, "W"), str(use.blocks), "" if use.absolute else "relative",
    )  # fmt: skip


def _figure(figure: Figure | None, unit: str) -> str:
    """Return a figure without its interval."""
    return wording.figure(figure.value, figure.total, figure.unresolved, unit)[0] if figure else ""


def _throughput(summaries: Sequence[Summary]) -> Section:
    names = wording.naming(summaries)
    rows = [
        (
            *_where(summary, names), *wording.figure(one.frames_per_s, one.interval_per_s, one.unresolved, "1/s"),
            _gain(one), wording.per_s(one.slowest_per_s), wording.ms(one.ms_per_frame), str(one.frames), str(one.batch),
            str(one.blocks),
        )
        for summary in summaries if (one := summary.throughput) is not None
    ]  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("frames/s", True), Column("interval", True),
        Column("over one thread", True), Column("slowest sample", True, True), Column("ms per frame", True),
        Column("frames a sample", True, True), Column("batch", True, True), Column("blocks", True),
    )  # fmt: skip
    note = (
        "Frames per second of whole samples. Higher is better. `over one thread`: of the CPU of the same device. The "
        "time per frame is no latency: frames of a stream overlap, and those of a batch wait for each other. "
        f"{wording.LEVELS}."
    )
    return Section("throughput", "Throughput", note, columns, tuple(rows))


def _gain(one: Throughput) -> str:
    return wording.times_of(Ratio(one.over_one_thread, one.over_one_thread_interval, one.over_one_thread_unresolved))


def _cold(summaries: Sequence[Summary]) -> Section:
    names = wording.naming(summaries)
    rows = [
        (
            *_where(summary, names), *wording.figure(cold.total_ms, cold.interval_ms, cold.unresolved),
            wording.ms(cold.setup_ms), wording.ms(cold.first_ms), str(cold.blocks),
        )
        for summary in summaries if (cold := summary.cold) is not None
    ]  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("cold start ms", True), Column("interval", True),
        Column("set-up", True), Column(f"first {wording.sample(summaries)}", True), Column("blocks", True),
    )  # fmt: skip
    note = f"From a fresh process to its first result. {wording.LEVELS}."
    return Section("cold", "Cold start", note, columns, tuple(rows))


def _setup(summaries: Sequence[Summary]) -> Section:
    """Milliseconds of each step, and its share of the whole."""
    names, sample = wording.naming(summaries), wording.sample(summaries)
    rows = [
        (
            *_where(summary, names), use.kind, wording.ms(use.total_ms),
            *(_with_share(use.steps_ms.get(name), use.total_ms) for name in setup.STEPS),
            wording.ms(use.first_ms), wording.ms(use.readback_ms), wording.ms(use.first_result_ms), str(use.blocks),
        )
        for summary in summaries for use in summary.setup
    ]  # fmt: skip
    columns = (
        Column("device"), Column("configuration"), Column("start"), Column("set-up ms", True),
        *(Column(name, True, name not in SETUP_IN_TERMINAL) for name in setup.STEPS), Column(f"first {sample}", True),
        Column("read-back", True, True), Column("first result ms", True), Column("blocks", True),
    )  # fmt: skip
    note = (
        f"Set-up: from a fresh process to its first {sample}, in ms; its steps are those of the median block, with "
        f"their share. First result: the first {sample} and its read-back are in it. cold: no cache at all; warm: the "
        "driver may have its own; cached: the farm's kept programs."
    )
    return Section(SETUP, "Set-up: cold, warm, cached", note, columns, tuple(rows))


def _with_share(value_ms: float | None, total_ms: float) -> str:
    """`46.8 (17 %)`; of a step that takes less than a hundredth only that."""
    if value_ms is None or total_ms <= 0:
        return ""
    share = value_ms / total_ms
    return f"{wording.ms(value_ms)} ({share:.0%})" if share >= SHOWN_SHARE else "< 1%" if value_ms else "0"


def _stability(summaries: Sequence[Summary]) -> Section:
    names = wording.naming(summaries)
    rows = [
        (*_where(summary, names), found.verdict.value, found.reason)
        for summary in summaries
        if (found := summary.stability) is not None and found.verdict in (Verdict.DRIFTING, Verdict.BIMODAL)
    ]
    columns = (Column("device"), Column("configuration"), Column("verdict"), Column("because"))
    note = "Results whose blocks have a trend, or lie on two levels: their median hides it."
    return Section("stability", "Not stable", note, columns, tuple(rows), frozenset(range(len(rows))))


def _canaries(content: Content) -> Section:
    rows = [(one.serial, one.verdict.value, one.reason, str(one.failed or "")) for one in content.canaries]
    bad = frozenset(i for i, one in enumerate(content.canaries) if one.verdict is CanaryWord.CHANGED)
    columns = (Column("device"), Column("verdict"), Column("because"), Column("not ok", True))
    note = "The same small workload again and again: whether the device has changed over the run."
    return Section("canaries", "Canaries", note, columns, tuple(rows), bad)


def _decisions(content: Content) -> Section:
    rows = [(one.serial, one.label, one.decision.text) for one in content.decisions]
    short = (Need.MAX_BLOCKS, Need.NO_GOOD_BLOCK)
    bad = frozenset(i for i, one in enumerate(content.decisions) if one.decision.need in short)
    columns = (Column("device"), Column("configuration"), Column("number of blocks"))
    note = (
        "Blocks were added until half the interval was at most the wanted share of the median, or up to the cap. The "
        "interval is wider than that of as many blocks fixed beforehand: choosing when to stop takes part of its error."
    )
    return Section("stopping", "Sequential sampling", note, columns, tuple(rows), bad)


def _silent(content: Content) -> Section:
    rows = tuple((serial, wording.outcomes(jobs)) for serial, jobs in sorted(content.silent.items()))
    columns = (Column("device"), Column("jobs"))
    note = "Devices that had jobs, of which none has a record."
    return Section("silent", "No result", note, columns, rows)


def _invalid(summaries: Sequence[Summary]) -> Section:
    names = wording.naming(summaries)
    rows = [
        (*_where(summary, names), reason.code, str(reason.blocks), reason.detail)
        for summary in summaries
        for reason in summary.invalid
    ]
    columns = (
        Column("device"),
        Column("configuration"),
        Column("reason"),
        Column("blocks", True),
        Column("for example"),
    )
    note = "Measured, kept, and not counted."
    return Section("invalid", "Invalid blocks", note, columns, tuple(rows), frozenset(range(len(rows))))


def _failed(summaries: Sequence[Summary]) -> Section:
    """Return why blocks ended without a measurement. A page says it beside the cell, where a terminal has no room."""
    names = wording.naming(summaries)
    rows = [
        (*_where(summary, names), wording.not_ok(summary), reason)
        for summary in summaries if not summary.invalid
        for reason in summary.reasons[:SHOWN_REASONS]
    ]  # fmt: skip
    columns = (Column("device"), Column("configuration"), Column("blocks"), Column("because"))
    return Section("failed", "Not measured", "", columns, tuple(rows), frozenset(range(len(rows))))


def _conditions(summaries: Sequence[Summary]) -> Section:
    """One row for each condition and what became of it, with the devices for which it is so."""
    worst: dict[tuple[str, str], dict[str, ConditionProof]] = {}
    for summary in summaries:
        for proof in summary.conditions:
            known = worst.setdefault((proof.name, proof.wanted), {})
            known[summary.serial] = min(known.get(summary.serial, proof), proof, key=_proves)
    found: dict[tuple[str, str, str], dict[str, ConditionProof]] = {}
    for (name, wanted), proofs in worst.items():
        for serial, proof in proofs.items():
            found.setdefault((name, wanted, _proof_text(proof)), {})[serial] = proof
    rows = tuple(
        (name, wanted, words, wording.few(list(serials)), _as_read(next(iter(serials.values()))))
        for (name, wanted, words), serials in found.items()
    )
    bad = frozenset(index for index, row in enumerate(rows) if not row[2].startswith("proven") or "not put" in row[2])
    columns = (
        Column("condition"),
        Column("wanted"),
        Column("held"),
        Column("devices"),
        Column("as read, e.g.", page_only=True),
    )
    note = "As the devices themselves told it during the block. Of several blocks the one that proves least counts."
    return Section("conditions", "Conditions", note, columns, rows, bad)


def _as_read(proof: ConditionProof) -> str:
    """Return what the device told for the block; of a condition that is only checked, what it told before it."""
    return proof.held or proof.before


def _proves(proof: ConditionProof) -> tuple[bool, int]:
    """The less of a device's cells that is, the less it proves; what was put back in one of them was put back."""
    return proof.proven, (False, True, None).index(proof.restored)


def _proof_text(proof: ConditionProof) -> str:
    restored = {None: "", True: ", put back", False: ", not put back"}[proof.restored]
    return ("proven" if proof.proven else "not proven") + restored
