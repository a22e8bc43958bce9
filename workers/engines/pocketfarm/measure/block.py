"""The settings with which one block is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .run_request import CpuUse

Setup = Literal["cold", "warm", "cached", "any"]
"""The compiled programs that a fresh process finds. cold: none, neither the agent's nor the driver's; warm: the
driver's, if it keeps any; cached: the agent's too; any: as earlier runs left them."""


@dataclass(frozen=True)
class Block:
    """The settings of one block."""

    name: str
    """`<job>/<attempt>`: with the device's marker before it, the agent's."""
    warmup: int
    samples: int
    """Each of one inference, or of a stream of `inferences`."""
    deadline_s: float
    layer_passes: int = 0
    threads: int = 0
    inferences: int = 1
    cpu_use: CpuUse = field(default_factory=CpuUse)
    create_per_frame: bool = False
    launch: str = "auto"
    """The value of the axis."""
    power_period_ms: int = 0
    idle_s: float = 0.0
    load_s: float = 0.0
    stop_temp_c: float | None = None
    """The temperature above which the load ends; None: at none."""
    warmup_stable: float = 0.0
    cpus: str = ""
    await_discharging_s: float = 0.0
    discharging_sign: int = 0
    """The sign of the gauge, as it was calibrated; 0: not known."""
    setup: Setup = "any"
    context: int = 0
    """Tokens of a text that are taken before the clock starts."""
    generate: int = 0
    """Tokens behind the text; 0: the plan does not generate."""
    keeps_state: bool = False
    """The variables that the last answer leaves are wanted."""
    checkpoint_every: int = 0
    """Epochs; 0: the plan does not train."""

    @property
    def is_primed(self) -> bool:
        """A run before the measured one leaves the compiled programs that it is to find."""
        return self.setup in ("warm", "cached")
