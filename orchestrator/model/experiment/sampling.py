"""The number of blocks and samples that are measured, and the phases of a block."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from orchestrator.model.base import Model, rule
from orchestrator.model.quantity import Rest, Seconds, Share

SETUP_S = 30.0
SUSTAINED_MARGIN = 0.1
"""The time that a sustained block needs beyond rest and load: seconds, and a share (the last inference may be slow)."""
MOST_SAMPLES = 100_000
"""The most samples of a block; under a longer load each is the mean of several, so that its record can be kept."""
LEAST_BLOCKS = 12
"""Good blocks with which a target can be met: fewer show too badly how alike they are to decide when to stop."""


class Sampling(Model):
    """The number of measurements, and the course of a block: rest, warm-up, load, rest."""

    mode: Literal["steady", "cold", "sustained"] = "steady"
    """`steady`: after a warm-up; `cold`: set-up and the first inference of a fresh process without any cache;
    `sustained`: load for the whole of `load`, to see throttling."""
    blocks: int = Field(default=7, ge=1, le=1000)
    """Independent repetitions, each in a fresh agent process. Six give an interval of 95 %, seven still do when one
    does not count; `farm compare` and `farm best` need five of each side. Fewer are a quick look."""
    target_interval: Share | None = None
    """Add blocks to a configuration until the half-width of its interval is at most this share of the median: `5 %`.
    Twelve good blocks are needed at least: fewer show too badly how alike they are to decide when to stop."""
    max_blocks: int = Field(default=30, ge=1, le=1000)
    """The most blocks of a configuration on a device, with `target_interval`."""
    warmup: int = Field(default=1, ge=0, le=10_000)
    """Inferences at the start of a block that are kept but marked as warm-up."""
    warmup_stable: Share | None = None
    """Go on warming up until the last five inferences agree within this share: `2 %`; at most 30 times `warmup`,
    and at least 30 inferences, more."""
    samples: int = Field(default=5, ge=1, le=MOST_SAMPLES)
    """Timed samples of a block, at least: inferences, or streams of `frames`; means of several beyond 100000."""
    frames: int = Field(default=1, ge=1, le=100_000)
    """Frames of a sample. 1: a sample is one inference, and its time the latency. More: they are handed to the device
    back to back, nobody waits for one before the next, and what is measured is the throughput in frames per second."""
    load: Rest = 0.0
    """Least duration of the load phase, with a unit: `30 s`; inferences go on until both are reached."""
    idle: Rest = 0.0
    """Rest before the warm-up and after the load, for the idle power: `60 s`."""
    order: Literal["interleaved", "random", "abba"] = "interleaved"
    """The order in which a device runs its blocks: block 0 of every configuration, then block 1, ...; in random
    order within each round; or each round in the reverse order of the one before, which cancels linear drift, with
    neighbours exchanged in every second pair of rounds, which cancels the heat that the configuration before left."""
    canary: int = Field(default=0, ge=0, le=1000)
    """The blocks of a device after which one block of a small reference workload runs; 0: none."""
    deadline: Seconds = 120.0
    """Wall-clock limit of one block on the device, and limit of the processor time to compile it before, with a unit:
    `90 s`, `5 min`."""

    @model_validator(mode="before")
    @classmethod
    def _cold(cls, data: object) -> object:
        """A cold block is one inference without a warm-up: that is its default, and nothing else is allowed."""
        if not isinstance(data, dict) or data.get("mode") != "cold":
            return data
        if data.get("warmup", 0) != 0 or data.get("samples", 1) != 1:
            raise ValueError("mode `cold` has no warm-up and one inference: leave out `warmup` and `samples`")
        return {**data, "warmup": 0, "samples": 1}

    @property
    def is_watched(self) -> bool:
        """True if blocks are added until intervals are narrow: such intervals are wider."""
        return self.target_interval is not None

    @property
    def why_out_of_reach(self) -> str:
        """Return why no cell can meet the target, and how to mend it; empty where one may, or without a target."""
        if self.target_interval is None or self.max_blocks >= LEAST_BLOCKS:
            return ""
        return (
            f"no configuration can meet target_interval {self.target_interval:.1%}: that takes {LEAST_BLOCKS} good "
            f"blocks, and max_blocks is {self.max_blocks}; mend it: sampling.max_blocks of {LEAST_BLOCKS} or more "
            "(30 by default)"
        )

    @rule
    def _consistent(self) -> None:
        if self.target_interval is not None and self.max_blocks < self.blocks:
            raise ValueError(f"max_blocks {self.max_blocks} is below blocks {self.blocks}")
        if self.mode == "sustained" and self.load == 0:
            raise ValueError("mode `sustained` needs `load`, e.g. `load: 10 min`")
        if self.mode != "steady" and self.frames > 1:
            raise ValueError(f"mode `{self.mode}` looks at single inferences: leave out `frames`")
        if self.mode == "cold" and (self.warmup_stable is not None or self.load > 0):
            raise ValueError("mode `cold` has no warm-up and one inference: leave out `warmup_stable` and `load`")
        needed = 2 * self.idle + self.load
        if needed >= self.deadline:
            raise ValueError(f"a block rests and loads for {needed:g} s, and its deadline is {self.deadline:g} s")
        margin = SETUP_S + SUSTAINED_MARGIN * needed
        if self.mode == "sustained" and self.deadline < needed + margin:
            raise ValueError(
                f"a sustained block rests and loads for {needed:g} s; with set-up, warm-up and slow last inferences "
                f"its deadline must be at least {needed + margin:.0f} s, and is {self.deadline:g} s"
            )
