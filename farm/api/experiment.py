"""An experiment of the farm, as a notebook has it: wait for it, read it, look at it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.figures import QUANTITIES, TOKEN_ENERGIES
from orchestrator.model.quantity import counted

from .command_line import CommandLine, Option

if TYPE_CHECKING:
    import pandas as pd

    from .plot import Plot
PAGE_PX = 720
_OTHERS = {n: each.field(n) for n, each in QUANTITIES.items() if each.of or each.of_load or n in TOKEN_ENERGIES}
"""Columns of the quantities without figures of their own, and of a token's energies."""
STATES = ("cold", "warm", "cached", "none")
"""Starts of a process: nothing compiled, by the driver at most, by the farm, nothing to compile."""


@dataclass(frozen=True)
class Experiment:
    """An experiment, by its id; every figure is asked of the farm anew. Its methods raise CommandFailed."""

    id: str
    at: CommandLine

    def wait(self, *, timeout: str | None = None, progress: bool = True) -> Experiment:
        """Return when every job is over, or after a time such as "30 min". Shows a bar of the jobs that ended."""
        from tqdm import tqdm

        last: dict[str, Any] = {}
        with tqdm(desc=self.id, unit="job", disable=not progress) as bar:
            for last in self.at.looks(self.id, timeout):
                bar.total = last["total"]
                bar.set_postfix_str(last["waiting"])
                bar.update(last["done"] - bar.n)
        if timeout and last.get("done") != last.get("total"):
            raise TimeoutError(
                f"{self.id} is not over after {timeout}: {last['done']} of {counted(last['total'], 'job')}"
            )
        return self

    def status(self) -> dict[str, Any]:
        """Jobs by state and outcome, why they wait, when it ends, what is excluded, what went wrong."""
        return self.at.status(self.id)

    def results(self) -> pd.DataFrame:
        """A row for each device and configuration: median of blocks with its interval (ms), or of streams
        `frames_per_s`; set-up (ms) by state, memory (bytes), power (W); energy (J) with its interval, and in
        `energy_basis` whether it is `net` or `gross`. What is not resolved is missing, and `not_resolved` says why.
        `source` says what measured it: phone, virtual, workstation, replay, import."""
        import pandas as pd

        return pd.DataFrame([row_of(each) for each in self.at.results(self.id)])

    def samples(self) -> pd.DataFrame:
        """A row for each sample of every attempt; column `outcome` says which attempts count. Times in ms."""
        return self._table("samples")

    def layers(self) -> pd.DataFrame:
        """A row for each measured run of a layer, in ms."""
        return self._table("layers")

    def power(self) -> pd.DataFrame:
        """A row for each power reading, in W, A, V and degrees Celsius."""
        return self._table("power")

    def predictions(self) -> pd.DataFrame:
        """A row for each example of the workload's set."""
        return self._table("predictions")

    def tokens(self) -> pd.DataFrame:
        """A row for each token of a language model's answers, in ms, with temperatures and clocks beside it."""
        return self._table("tokens")

    def _table(self, what: str) -> pd.DataFrame:
        import pandas as pd

        return pd.read_parquet(io.BytesIO(self.at.table(self.id, what)))

    def best(self, axis: str, **options: Option) -> pd.DataFrame:
        """`farm best`: the best value of an axis in every group, and its ratio to the next."""
        return table_of(self.at.answer("best", self.id, axis=axis, **options))

    def report(self) -> Page:
        """The whole report with its charts; a notebook shows it in place, `save` writes the file."""
        return Page(self.at.report(self.id))

    def plot(self, metric: str = "latency") -> Plot:
        """Draw latency, p90, energy or any other quantity by device, with intervals, as `farm plot` does."""
        from .plot import dots

        return dots(self.at.results(self.id), metric, self.id)

    def cancel(self) -> list[str]:
        """Cancel what is not over; the ids of the jobs."""
        return self.at.cancel(self.id)

    def retry(self) -> list[str]:
        """Put lost, failed and killed jobs back into the queue; their ids."""
        return self.at.retry(self.id)

    def _repr_html_(self) -> str:
        return f"<b>{escape(self.id)}</b>{self.results().to_html()}"


@dataclass(frozen=True)
class Page:
    """A page of HTML that needs nothing from elsewhere."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write it into a file."""
        Path(path).write_text(self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{PAGE_PX}" style="border:0"></iframe>'


def table_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A row for each object; a column for each field, also of objects inside, which are missing where there is none."""
    import pandas as pd

    inner = {name: dict.fromkeys(value) for row in rows for name, value in row.items() if isinstance(value, dict)}
    empty = {"interval": dict.fromkeys(("low", "high", "level")), **inner}
    whole = [{name: empty.get(name, value) if value is None else value for name, value in row.items()} for row in rows]
    return pd.json_normalize(whole)


def row_of(summary: dict[str, Any]) -> dict[str, Any]:
    """One row of `results()`."""
    told: dict[str, dict[str, Any]] = {}
    for each in summary["quantities"]:  # of several sources of power the first one
        told.setdefault(each["metric"], each)
        told.setdefault(f"{each['metric']} {each['basis']}".strip(), each)
        told.setdefault(f"{each['metric']} {each['basis'].partition(' ')[0]}".strip(), each)
    basis = (summary["energy_per_inference"] or {}).get("basis")
    return {
        "device": summary["serial"],
        "source": summary["source"],
        "model": summary["model"],
        "network": summary["workload"],
        "backend": summary["backend"],
        "precision": summary["precision"],
        **summary["options"],
        **_columns(told.get("latency"), "median_ms", "low_ms", "high_ms"),
        "p90_ms": (summary["latency"] or {}).get("p90_ms"),
        **_columns(told.get("throughput"), "frames_per_s"),
        **{column: _value(told.get(name)) for name, column in _OTHERS.items() if name in told},
        **{f"setup_{state}_ms": _value(told.get(f"setup {state}")) for state in STATES},
        **{f"memory_{kind}_bytes": _value(told.get(f"memory {kind}")) for kind in ("device", "process", "pss")},
        **_columns(told.get(f"energy {basis}"), "energy_j", "low_j", "high_j"),
        "energy_basis": basis,
        **_columns(told.get("power load"), "load_power_w"),
        "not_resolved": "; ".join(_why_not(each) for each in summary["quantities"] if each["not_resolved"]),
        "blocks": summary["outcomes"].get("ok", 0),
        "doubts": list(dict.fromkeys(doubt["code"] for doubt in summary["doubts"])),
    }


def _columns(told: dict[str, Any] | None, name: str, low: str = "", high: str = "") -> dict[str, float | None]:
    """A quantity, and the ends of its interval where columns are named for them; None where it is not resolved."""
    interval = (told and told["interval"]) or {}
    ends = {low: interval.get("low"), high: interval.get("high")} if low else {}
    return {name: _value(told), **ends}


def _value(told: dict[str, Any] | None) -> float | None:
    return None if told is None else told["value"]


def _why_not(told: dict[str, Any]) -> str:
    return f"{told['metric']} {told['basis']}".strip() + f": {told['not_resolved']}"
