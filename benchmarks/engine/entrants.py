"""The contenders by name that can start, and rows for those that cannot; ours tuned before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernels.options import Precision
from kernels.tuning import Database

from .agent_process import Agent
from .caches import cache_environment
from .case import Case
from .contender import Contender, ContenderError
from .ours import Ours
from .peer_process import Peer
from .registry import BACKENDS, CONTENDERS
from .results import Row
from .rounds import Report
from .tuned import tune_network


@dataclass(frozen=True)
class Setting:
    """The setting of all networks of a benchmark."""

    binary: Path
    """The native agent."""
    device: str
    """Words of the GPU's name; empty: each engine's own."""
    threads: tuple[int, ...]
    """The threads of the CPU engines, a row each."""
    spirv_cache: Path
    caches: Path
    """A folder for each contender's caches."""
    database: Database
    """The database of tuning."""
    precision: Precision = "fp32"


@dataclass(frozen=True)
class Entrants:
    """The contenders that take part, and rows of those that do not."""

    contenders: list[Contender]
    rows: list[Row] = field(default_factory=list)


def entrants(names: Sequence[str], setting: Setting, work: Path) -> Entrants:
    """`work`: a folder for plans and models, the caller's to remove."""
    found = Entrants([])
    for name in names:
        entry = CONTENDERS[name]
        if entry.missing:
            why = f"not installed: {', '.join(entry.missing)}"
            found.rows.append(Row(contender=name, status="absent", why=why))
            continue
        if setting.precision not in entry.precisions:
            why = f"computes in {', '.join(entry.precisions)} only"
            found.rows.append(Row(contender=name, status="absent", why=why))
            continue
        for count in setting.threads if entry.on_cpu else (setting.threads[-1],):
            title = f"{name} {count}T" if entry.on_cpu else name
            found.contenders.append(_contender(name, title, count, setting, work / title))
    return found


def _contender(name: str, title: str, threads: int, setting: Setting, folder: Path) -> Contender:
    entry = CONTENDERS[name]
    if entry.kind == "ours":
        return Ours(
            title, BACKENDS[entry.module], setting.binary, folder, spirv_cache=setting.spirv_cache,
            threads=threads if entry.on_cpu else 0, device=setting.device, precision=setting.precision,
        )  # fmt: skip
    variables = dict(entry.variables)
    return Peer(
        title, entry.module, folder, threads=threads, device=setting.device, variables=variables,
        precision=setting.precision,
    )  # fmt: skip


def with_tuned(found: Entrants, case: Case, setting: Setting, seconds: float, work: Path, report: Report) -> Entrants:
    """Each of ours on a GPU once more, after so many seconds of tuning; a row where there is nothing to gain."""
    contenders: list[Contender] = []
    rows = list(found.rows)
    for contender in found.contenders:
        contenders.append(contender)
        if isinstance(contender, Ours) and contender.backend != "cpu":
            try:
                contenders.append(_tuned(contender, case, setting, seconds, work, report))
            except ContenderError as e:
                rows.append(Row(contender=f"{contender.name} tuned", status="absent", why=str(e)))
    return Entrants(contenders, rows)


def _tuned(ours: Ours, case: Case, setting: Setting, seconds: float, work: Path, report: Report) -> Ours:
    """Raises ContenderError."""
    title = f"{ours.name} tuned"
    caches = setting.caches / title.replace(" ", "-")

    def show(text: str) -> None:
        report(f"{title}: {text}", 0, 1)

    found = tune_network(
        case.graph, ours.backend, Agent(setting.binary, caches / "agent", cache_environment(caches)),
        device=setting.device, database=setting.database, seconds=seconds, spirv_cache=setting.spirv_cache,
        report=show, precision=setting.precision,
    )  # fmt: skip
    if not found.choices:
        raise ContenderError("nothing was faster than the compiler's own choices")
    remark = f"{len(found.choices)} convolutions tuned, {found.searched} searched in {found.seconds:.0f} s"
    return Ours(
        title, ours.backend, setting.binary, work / title, spirv_cache=setting.spirv_cache, device=setting.device,
        tuned=found.choices, remarks=[remark], precision=setting.precision,
    )  # fmt: skip
