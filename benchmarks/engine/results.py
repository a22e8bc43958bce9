"""Raw results of a benchmark: what is written after every network, and read again to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from .kept_rows import write_whole
from .statistics import Steady, steady


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SetUp(_Part):
    """The set-up from the start of a process to its first output."""

    total_ms: float
    """The time without `import`."""
    steps_ms: dict[str, float]
    error: float
    """The error of the first output, as `Row.error`."""


class Row(_Part):
    """One contender on one network."""

    contender: str
    status: Literal["ok", "wrong", "failed", "absent"]
    why: str = ""
    device: str = ""
    version: str = ""
    remarks: list[str] = Field(default_factory=list)
    error: float | None = None
    """The worst of all verified outputs: norm of the difference to the reference over the reference's norm."""
    copies_inside: bool = True
    """True if a sample starts and ends with the data in the host's memory."""
    copies_ms: float | None = None
    """Input to the device and outputs back, where a sample does not include them."""
    host_ms: float | None = None
    """Compiling on the host beforehand (ours)."""
    cold: SetUp | None = None
    """First process, empty caches."""
    warm: SetUp | None = None
    """A later process, the caches filled."""
    rounds_ms: list[list[float]] = Field(default_factory=list)
    """Samples by round."""
    processor_ms: list[float] = Field(default_factory=list)
    """The processor's time an inference, all threads, by round; where the process can be asked."""

    @property
    def least_ms(self) -> float | None:
        """The least sample: what a machine that others disturb is nearest to when they do not."""
        return min((ms for samples in self.rounds_ms for ms in samples), default=None)

    @property
    def steady(self) -> Steady | None:
        """None without a time."""
        return steady(self.rounds_ms) if self.status == "ok" and any(self.rounds_ms) else None


class NetworkResult(_Part):
    """All contenders on one network."""

    network: str
    seed: int
    input_seeds: list[int]
    reference: str
    rows: list[Row]
    at: float
    """Unix time of the end."""
    seconds: float
    """The time that it took."""
    load_average: float | None = None
    """The load average of the last minute, at the end: well above the benchmark's own where others disturbed it."""


class Results(_Part):
    """The file."""

    schema_version: Literal[1] = 1
    machine: dict[str, str | int | float | list[str] | None]
    options: dict[str, str | int | float | bool | list[str] | None]
    networks: list[NetworkResult] = Field(default_factory=list)

    def with_network(self, result: NetworkResult) -> Results:
        """Return results with this network's in the place of an older one."""
        others = [each for each in self.networks if each.network != result.network]
        return self.model_copy(update={"networks": [*others, result]})

    def write(self, path: Path) -> None:
        """Write the file as a whole: a reader sees the old file or the new."""
        write_whole(path, self.model_dump_json(indent=1) + "\n")


def read(path: Path) -> Results:
    """Raises pydantic's ValidationError for a file of another kind."""
    return Results.model_validate_json(path.read_bytes())
