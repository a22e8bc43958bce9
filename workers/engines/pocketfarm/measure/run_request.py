"""The options of one run of the agent, and its command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workers.engines.agent import BlockRequest, words

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


@dataclass(frozen=True, kw_only=True)
class RunRequest(BlockRequest):
    """The options of `pocketfarm-agent run`. A sample is one inference, or a stream of `inferences`. Of a training the
    journal lies beside its checkpoint."""

    plan: str
    inputs: Mapping[str, str]
    layer_passes: int
    threads: int
    device: str = ""
    """Part of the name of the device to use, where there are several."""
    memory_total: int = 0
    """Bytes of device memory that the run may take; 0: what the device has."""
    largest_object: int = 0
    """The largest size of one allocation."""
    inferences: int = 1
    least_sample_us: int = 0
    """Shorter inferences of the load are told by the mean of several."""
    cpu_use: CpuUse = CpuUse()
    create_per_frame: bool = False
    """Context, programs and memory are made anew for each inference."""
    tokens: str = ""
    """The file of a text's tokens; empty: the plan does not generate."""
    context: int = 0
    generate: int = 0
    state: str = ""
    """The file that is to keep what a text leaves in the variables; empty: none."""
    state_before: str = ""
    """The file of an earlier text, which is the context; empty: that is taken."""
    checkpoint: str = ""
    """The file that keeps a training's variables; empty: the plan does not train."""
    checkpoint_every: int = 0
    resume: bool = False
    """Go on from that file."""

    @property
    def journal(self) -> str:
        if self.checkpoint:
            return journal_of(self.checkpoint, self.marker.rpartition("/")[2])
        return super().journal

    def argv(self) -> list[str]:
        options = self.options() | {
            "--plan": self.plan,
            "--output-dir": self.folder,
            "--layer-passes": self.layer_passes,
            "--threads": self.threads,
        }
        only_where_given = {
            "--cache-dir": self.cache,
            "--device": self.device,
            "--memory-total": self.memory_total,
            "--largest-object": self.largest_object,
            "--inferences": self.inferences if self.inferences > 1 else 0,
            "--least-sample-us": self.least_sample_us,
            "--tokens": self.tokens,
            "--context": self.context,
            "--generate": self.generate,
            "--checkpoint": self.checkpoint or self.state,
            "--checkpoint-every": self.checkpoint_every,
            "--resume": self.checkpoint if self.resume else self.state_before,
        }
        options |= {name: value for name, value in only_where_given.items() if value}
        argv = ["run", *words(options), *self.cpu_use.argv, *(["--create-per-frame"] if self.create_per_frame else [])]
        argv += [word for name, path in self.inputs.items() for word in ("--input", f"{name}={path}")]
        return [*argv, "--detach"]
