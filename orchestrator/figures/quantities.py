"""The quantities of a result: each is declared here once, with its name, its unit, and where it comes from.

Tables, pages, JSON, notebooks, comparisons and Prometheus take them from here, so that one quantity is one number under
one name everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Literal, NamedTuple

from orchestrator.model.record import Record

from . import answers
from .plateau import Plateau

TOKEN_ENERGIES = ("prompt energy", "generated energy")
"""Energies of a token, by phase."""
ENERGIES = ("energy", *TOKEN_ENERGIES)
"""Quantities whose blocks have uncertainties of their own, by each source of power."""
POWER_LABELS = ("power_source", "scope", "meter", "gain")


class Quantity(NamedTuple):
    """One thing that is told of results."""

    unit: str
    family: str
    """The family's name for Prometheus, in base units."""
    base: float = 1.0
    """One unit in the base unit."""
    help: str = ""
    """Its meaning, with SAMPLE where what is timed has its noun."""
    has_interval: bool = True
    """True if it is told with its interval, and so may not be resolved."""
    labels: tuple[str, ...] = ()
    """Labels of Prometheus that tell its figures apart."""
    margin: float | None = None
    """Sides of a comparison that differ by less are the same: a share; None: it is not compared."""
    between: float = 0.0
    """Standard deviation, a share, that one phone is assumed to have between nights, for sides with too few nights
    to measure it."""
    more_is_worse: bool = True
    of: Callable[[Record], float | None] | None = None
    """Its value in a block, of one that needs no figures of its own: its median over blocks is told."""
    of_load: Callable[[Plateau], float | None] | None = None
    """Its value in a block of sustained load, likewise."""
    of_every_block: bool = False
    """It is told where every good block has it: those that do, alone, are no fair sample."""
    of_energy: bool = False
    """It is made of a block's energy: void where that is, under a load that is too short."""
    part: Literal["", "tokens", "sustained"] = ""
    """The table of a report that it stands in; empty: `further`, where it has no figures of its own."""
    column: str = ""
    """Its column there; empty: its name with its unit."""
    wide: bool = True
    """False if a terminal has no room for its interval."""

    @property
    def table(self) -> str:
        """The table of a report that follows from this declaration; empty where figures of its own stand elsewhere."""
        return self.part or ("further" if self.of or self.of_load else "")

    def says(self, sample: str = "inference, answer or epoch") -> str:
        """Return what it is. `sample`: the noun of what is timed."""
        return self.help.replace("SAMPLE", sample)

    def field(self, name: str) -> str:
        """Return its name in JSON: `prompt_tokens_per_s`."""
        return f"{name} {self.unit.replace('1/', 'per ')}".strip().replace(" ", "_")


def _counted(name: str, unit: float = 1.0) -> Callable[[Record], float | None]:
    """Return what reads a count of the system (`device_agent/src/system/counts.cc`): its share of a sample."""

    def of(record: Record) -> float | None:
        counted = [phase.counts[name] for phase in record.phases if phase.phase == "load" and name in phase.counts]
        inferences = sum(sample.runs for sample in record.samples if sample.phase == "timed")
        return sum(counted) / unit / inferences if counted and inferences else None

    return of


QUANTITIES: dict[str, Quantity] = {
    "latency": Quantity(
        "ms", "farm_results_latency_seconds", 1e-3, "Time of one SAMPLE.",
        margin=0.02, between=0.005,
    ),
    "first result": Quantity(
        "ms", "farm_results_first_result_seconds", 1e-3, "From a fresh process to its first result, of cold starts."
    ),
    "throughput": Quantity(
        "1/s", "farm_results_throughput_frames_per_second", 1.0, "Frames per second of streams.",
        margin=0.02, between=0.005, more_is_worse=False,
    ),
    "setup": Quantity(
        "ms", "farm_results_setup_seconds", 1e-3,
        "From a fresh process to its first SAMPLE, by state: cold, warm, cached, none.", has_interval=False,
        labels=("state",), margin=0.10, between=0.02,
    ),
    "memory": Quantity(
        "B", "farm_results_memory_bytes", 1.0,
        "Memory: `device` is the agent's own allocations, `process` its VmHWM, `pss` its Pss.", has_interval=False,
        labels=("kind",), margin=0.01,
    ),
    "energy": Quantity(
        "J", "farm_results_energy_per_inference_joules", 1.0,
        "Energy of one SAMPLE by each source of power; net of the idle power, or gross.",
        labels=(*POWER_LABELS, "basis"), margin=0.03, between=0.01,
    ),
    "power": Quantity(
        "W", "farm_results_power_watts", 1.0,
        "Mean power by each source of power: under load, and idle before and after it.",
        labels=(*POWER_LABELS, "phase"),
    ),
    "cpu time": Quantity(
        "ms", "farm_results_cpu_time_seconds", 1e-3,
        "Processor time of the agent for one SAMPLE, with writing its inputs.", has_interval=False,
        of=_counted("cpu_ns", 1e6),
    ),
    "prompt tokens": Quantity(
        "1/s", "farm_results_prompt_tokens_per_second", 1.0,
        "Tokens of a language model's prompts over the time to the first token.",
        margin=0.02, between=0.005, more_is_worse=False, of=answers.prompt_per_s,
        part="tokens", column="prompt tokens/s",
    ),
    "generated tokens": Quantity(
        "1/s", "farm_results_generated_tokens_per_second", 1.0,
        "Tokens that a language model generates over the time that they took, where it is told behind the first one.",
        margin=0.02, between=0.005, more_is_worse=False, of=answers.generated_per_s,
        part="tokens", column="generated tokens/s",
    ),
    "generated tokens of each": Quantity(
        "1/s", "farm_results_generated_tokens_of_each_per_second", 1.0,
        "The same of one text, where a language model takes several side by side.",
        margin=0.02, between=0.005, more_is_worse=False, of=answers.generated_of_each_per_s,
        part="tokens", column="of each", wide=False,
    ),
    "first token": Quantity(
        "ms", "farm_results_first_token_seconds", 1e-3, "From the start of a prompt to the first token of its answer.",
        margin=0.02, between=0.005, of=answers.first_token_ms, part="tokens", column="first token ms", wide=False,
    ),
    "between tokens": Quantity(
        "ms", "farm_results_between_tokens_seconds", 1e-3, "From one token to the next, the median of a block.",
        margin=0.02, between=0.005, of=answers.between_tokens_ms, part="tokens", column="between tokens ms", wide=False,
    ),
    "between tokens p99": Quantity(
        "ms", "farm_results_between_tokens_p99_seconds", 1e-3,
        "From one token to the next, the 99th percentile of a block.",
        margin=0.10, between=0.02, of=answers.between_tokens_p99_ms, part="tokens", column="p99", wide=False,
    ),
    "prompt energy": Quantity(
        "J", "farm_results_prompt_token_energy_joules", 1.0,
        "Energy of one token of a language model's prompts by each source of power, net of the idle power.",
        labels=(*POWER_LABELS, "basis"), margin=0.03, between=0.01, part="tokens", column="J/prompt token", wide=False,
    ),
    "generated energy": Quantity(
        "J", "farm_results_generated_token_energy_joules", 1.0,
        "Energy of one token that a language model generates, behind the first, net of the idle power.",
        labels=(*POWER_LABELS, "basis"), margin=0.03, between=0.01, part="tokens", column="J/token",
    ),
    "tokens per battery percent": Quantity(
        "", "farm_results_tokens_per_battery_percent", 1.0,
        "Tokens that a hundredth of the battery's charge generates, by all that the phone draws meanwhile.",
        margin=0.03, between=0.01, more_is_worse=False, of=answers.tokens_per_percent, of_energy=True,
        part="tokens", column="tokens per %", wide=False,
    ),
    "model size": Quantity(
        "B", "farm_results_model_bytes", 1.0, "Size of a language model's file.", has_interval=False,
        margin=0.01, of=answers.model_bytes, part="tokens", column="model", wide=False,
    ),
    "plateau": Quantity(
        "1/s", "farm_results_plateau_units_per_second", 1.0,
        "Speed of a sustained load before it first falls: inferences, or tokens behind an answer's first.",
        margin=0.02, between=0.005, more_is_worse=False, of_load=attrgetter("per_s"),
        part="sustained", column="plateau units/s",
    ),
    "sustained": Quantity(
        "1/s", "farm_results_sustained_units_per_second", 1.0,
        "Speed in the last third of a sustained load: inferences, or tokens behind an answer's first.",
        margin=0.02, between=0.005, more_is_worse=False, of_load=attrgetter("sustained_per_s"),
        part="sustained", column="sustained units/s",
    ),
    "plateau end": Quantity(
        "s", "farm_results_plateau_end_seconds", 1.0,
        "From the beginning of a sustained load to where its speed first falls.",
        of_load=attrgetter("end_s"), of_every_block=True, part="sustained", column="end s",
    ),
    "until throttled": Quantity(
        "units", "farm_results_units_until_throttled", 1.0,
        "Inferences, or tokens behind an answer's first, of a sustained load until its speed first falls.",
        of_load=attrgetter("units"), of_every_block=True, part="sustained", column="until then", wide=False,
    ),
}  # fmt: skip
