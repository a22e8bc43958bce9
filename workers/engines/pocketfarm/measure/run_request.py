"""The options of one run of the agent, and its command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .checkpoints import journal_of


@dataclass(frozen=True)
class CpuUse:
    """The CPU backend's use of its threads."""

    per_call: bool = False
    """Threads start and end with each operation, instead of staying."""
    in_order: bool = False
    """The same, and each starts when the one before has begun."""
    pinned: bool = False
    """Each thread, or stage, on a core of its own."""
    pipeline: str = "none"

    @property
    def argv(self) -> list[str]:
        flags = {"--threads-per-call": self.per_call, "--threads-in-order": self.in_order, "--pin-threads": self.pinned}
        pipeline = [] if self.pipeline == "none" else ["--pipeline", self.pipeline]
        return [*(name for name, wanted in flags.items() if wanted), *pipeline]


@dataclass(frozen=True)
class RunRequest:
    """The options of `pocketfarm-agent run`; paths are the device's."""

    plan: str
    inputs: Mapping[str, str]
    folder: str
    """The folder for this attempt alone: journal (a training's lies beside its checkpoint) and outputs."""
    marker: str
    """`<serial>/<job>/<attempt>` (`Member.marker` has the details)."""
    warmup: int
    samples: int
    """Each of one inference, or of a stream of `inferences`."""
    layer_passes: int
    threads: int
    power_period_ms: int
    deadline_s: float
    cache: str
    """Folder of compiled programs; empty: none is kept, for a cold run."""
    device: str = ""
    """Part of the name of the device to use, where there are several."""
    idle_ms: int = 0
    load_ms: int = 0
    warmup_stable: float = 0.0
    """Share within which the last warm-ups must agree; 0: no matter."""
    cpus: str = ""
    """Cores for all threads of the agent; empty: any."""
    await_discharging_ms: int = 0
    discharging_sign: int = 0
    """Sign of the gauge's current while it discharges; 0: not known."""
    memory_total: int = 0
    """Bytes of device memory that the run may take; 0: what the device has."""
    largest_object: int = 0
    """The largest size of one allocation."""
    inferences: int = 1
    cpu_use: CpuUse = CpuUse()
    create_per_frame: bool = False
    """Context, programs and memory are made anew for each inference."""
    checkpoint: str = ""
    """The file that keeps a training's variables; empty: the plan does not train."""
    checkpoint_every: int = 0
    resume: bool = False
    """Go on from that file."""
    environment: tuple[str, ...] = ()
    """`NAME=VALUE` for this run alone."""

    @property
    def journal(self) -> str:
        if self.checkpoint:
            return journal_of(self.checkpoint, self.marker.rpartition("/")[2])
        return f"{self.folder}/journal.jsonl"

    def argv(self) -> list[str]:
        options: dict[str, object] = {
            "--plan": self.plan,
            "--output-dir": self.folder,
            "--journal": self.journal,
            "--warmup": self.warmup,
            "--samples": self.samples,
            "--layer-passes": self.layer_passes,
            "--threads": self.threads,
            "--power-period-ms": self.power_period_ms,
            "--deadline-s": f"{self.deadline_s:g}",
            "--marker": self.marker,
        }
        only_where_given = {
            "--cache-dir": self.cache,
            "--device": self.device,
            "--memory-total": self.memory_total,
            "--largest-object": self.largest_object,
            "--inferences": self.inferences if self.inferences > 1 else 0,
            "--idle-ms": self.idle_ms,
            "--load-ms": self.load_ms,
            "--warmup-stable": self.warmup_stable,
            "--cpus": self.cpus,
            "--await-discharging-ms": self.await_discharging_ms,
            "--discharging-sign": self.discharging_sign,
            "--checkpoint": self.checkpoint,
            "--checkpoint-every": self.checkpoint_every,
            "--resume": self.checkpoint if self.resume else "",
        }
        options |= {name: value for name, value in only_where_given.items() if value}
        argv = ["run", *(word for name, value in options.items() for word in (name, str(value)))]
        argv += [*self.cpu_use.argv, *(["--create-per-frame"] if self.create_per_frame else [])]
        argv += [word for name, path in self.inputs.items() for word in ("--input", f"{name}={path}")]
        return [*argv, "--detach"]
