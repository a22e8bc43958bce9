"""The model of a virtual phone: a validated YAML file in `profiles/`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .replay.recording import Recording, load_recording

PROFILE_DIR = Path(__file__).with_name("profiles")

Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]


class Part(BaseModel):
    """Frozen, and a misspelt field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Battery(Part):
    """Electrical model: open-circuit voltage by charge, behind an inner resistance."""

    capacity_mah: Positive
    design_voltage_v: Positive = 3.85
    resistance_ohm: Positive = 0.12
    level: Fraction = 0.7
    """State of charge of a new phone."""
    charging: bool = False
    """True if a new phone is powered by USB."""
    charge_w: Positive = 5.0
    ocv_v: tuple[tuple[Fraction, Positive], ...] = (
        (0.0, 3.30), (0.05, 3.55), (0.1, 3.65), (0.2, 3.72), (0.4, 3.79), (0.6, 3.90), (0.8, 4.06), (1.0, 4.32),
    )  # fmt: skip
    """(state of charge, volts), both rising."""

    @model_validator(mode="after")
    def _curve_rises(self) -> Battery:
        charge, volts = zip(*self.ocv_v, strict=True)
        rising = all(a < b for column in (charge, volts) for a, b in pairwise(column))
        if not rising or charge[0] != 0 or charge[-1] != 1:
            raise ValueError("ocv_v must rise in both columns, from charge 0 to charge 1")
        return self


class Power(Part):
    """Electrical power of the whole phone, screen dimmed, airplane mode."""

    idle_w: Positive
    load_w: Positive
    """The power with all of the host's cores busy for the phone's agent; in between, the share of cores counts."""
    suspended_w: Positive = 0.015
    """The power while nothing runs: screen off, kernel suspended."""
    leak_w_per_k: Annotated[float, Field(ge=0)] = 0.0
    """Leakage of a die that is warmer than the surroundings."""
    wander_w: Annotated[float, Field(ge=0)] = 0.0
    """Standard deviation of the idle power, which wanders over some seconds to a minute."""
    ripple: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The share of its mean by which an inference draws less in its last part: two thirds of that more before."""

    @model_validator(mode="after")
    def _load_exceeds_idle(self) -> Power:
        if self.load_w <= self.idle_w:
            raise ValueError("load_w must exceed idle_w")
        return self


class Thermal(Part):
    """Three heat capacities in a row (die - skin - surroundings, battery - skin), and where throttling begins."""

    ambient_c: float = 24.0
    die_j_per_k: Positive = 4.0
    skin_j_per_k: Positive = 60.0
    battery_j_per_k: Positive = 45.0
    die_skin_w_per_k: Positive = 0.25
    battery_skin_w_per_k: Positive = 0.4
    skin_ambient_w_per_k: Positive = 0.14
    status_skin_c: tuple[float, float, float, float, float, float] = (39.0, 42.0, 45.0, 49.0, 54.0, 58.0)
    """Skin temperature from which thermal status 1 (light) to 6 (shutdown) holds."""
    status_cap: tuple[Fraction, ...] = (1.0, 0.85, 0.7, 0.5, 0.35, 0.25, 0.2)
    """Share of the highest clock that remains at status 0 to 6."""
    hal_ready: bool = True
    """False: `dumpsys thermalservice` says `HAL Ready: false` and prints no HAL section."""

    @model_validator(mode="after")
    def _monotone(self) -> Thermal:
        if list(self.status_skin_c) != sorted(self.status_skin_c):
            raise ValueError("status_skin_c must rise")
        if len(self.status_cap) != 7 or list(self.status_cap) != sorted(self.status_cap, reverse=True):
            raise ValueError("status_cap needs seven falling values")
        return self


class Gauge(Part):
    """The manner of the fuel gauge's nodes: real phones differ in sign, unit, rate and noise."""

    refresh_ms: Positive = 250.0
    unit: Literal["uA", "mA"] = "uA"
    discharging_sign: Literal[-1, 1] = -1
    """Sign of `current_now` while discharging; the kernel's documentation says -1."""
    quantum_ua: Positive = 1000.0
    noise_ua: Annotated[float, Field(ge=0)] = 2000.0
    """Standard deviation of a reading, seeded by the phone."""
    denied: tuple[str, ...] = ()
    """Names of battery nodes that answer `Permission denied`, e.g. current_now."""


class LowMemory(Part):
    """The memory that is left to programs, and when the low-memory killer strikes."""

    system_bytes: int = Field(gt=0)
    """The bytes that Android and its apps keep. Programs are refused what exceeds the rest."""
    kill_free_bytes: int = Field(gt=0)
    """The killer ends the largest program where less than this is free."""


class CpuCluster(Part):
    """Cores that share a clock."""

    cores: int = Field(ge=1)
    min_khz: int = Field(gt=0)
    max_khz: int = Field(gt=0)


class Gpu(Part):
    """The graphics processor, and which of its nodes the shell user may read."""

    name: str
    vendor: Literal["adreno", "mali"]
    clocks_hz: tuple[int, ...] = Field(min_length=1)
    """Rising."""
    denied: tuple[str, ...] = ()
    """Names of nodes below the GPU's folder that answer `Permission denied`, e.g. gpuclk."""


class Odpm(Part):
    """One on-device power monitor: an IIO device."""

    name: str
    """The name as its `name` node prints it, e.g. s2mpg10-odpm."""
    index: int = Field(ge=0)
    """N of iio:deviceN; it moves between builds."""
    rails: dict[str, Fraction]
    """Rail -> share of the phone's energy that it counts, in the order of the channels."""
    denied: bool = True
    """True if `energy_value` is closed to the shell user, as on a real phone."""

    @model_validator(mode="after")
    def _less_than_the_phone(self) -> Odpm:
        if sum(self.rails.values()) > 1:
            raise ValueError("the rails of a monitor cannot count more than the phone takes")
        return self


class PublishedCell(Part):
    """A cell of a study's file in `experiments/published/`."""

    study: str
    table: str
    row: str
    column: str


class Figure(Part):
    """The origin of a figure of this file."""

    status: Literal["measured", "published", "chosen"]
    source: str
    cell: PublishedCell | None = None
    """The study's cell that has it; what a virtual phone has from there is never compared with it."""


class Profile(Part):
    """A model of phone."""

    schema_version: Literal[1] = 1
    name: str = Field(pattern=r"^[a-z0-9_]+$")
    model: str
    manufacturer: str
    device: str
    """Code name, `ro.product.device`."""
    platform: str
    """`ro.board.platform`."""
    soc: str
    android: str
    sdk: int = Field(ge=19)
    memory_bytes: int = Field(gt=0)
    low_memory: LowMemory | None = None
    """None: programs get what they ask for."""
    storage_bytes: int = Field(gt=0)
    storage_free_bytes: int = Field(gt=0)
    """Room on /data of a new phone; what is pushed takes from it."""
    apis: tuple[Literal["opencl", "vulkan", "cpu"], ...]
    cpu: tuple[CpuCluster, ...] = Field(min_length=1)
    gpu: Gpu
    battery: Battery
    power: Power
    thermal: Thermal = Thermal()
    gauge: Gauge = Gauge()
    odpm: tuple[Odpm, ...] = ()
    fixed_performance: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the highest clocks at which fixed performance mode holds them; None: the phone's power HAL has none."""
    root: bool = False
    """True if `su` is there."""
    lacks: tuple[str, ...] = ()
    """Commands of its release that the maker left out, e.g. settings."""
    cycle_count: int = Field(default=100, ge=0)
    recording: Recording | None = None
    """The recording that phones of this model replay; comes from `replay:FILE`."""
    figures: dict[str, Figure]
    """Field (dotted, of a list with its index) or a part of all such to its origin; the longest name holds."""

    @model_validator(mode="after")
    def _leaves_memory(self) -> Profile:
        if (limits := self.low_memory) and limits.system_bytes + limits.kill_free_bytes >= self.memory_bytes:
            raise ValueError("low_memory: system_bytes and kill_free_bytes together must be less than memory_bytes")
        return self

    @property
    def source(self) -> Literal["virtual", "replay"]:
        """The label of such a phone's results."""
        return "virtual" if self.recording is None else "replay"

    @property
    def cores(self) -> int:
        return sum(cluster.cores for cluster in self.cpu)


def profile_names() -> list[str]:
    """Names of the profiles that come with the product."""
    return sorted(path.stem for path in PROFILE_DIR.glob("*.yaml"))


def load_profile(name_or_path: str) -> Profile:
    """A profile by name, or by path of a YAML file. Raises ValueError saying what is wrong and what there is."""
    path = Path(name_or_path) if name_or_path.endswith((".yaml", ".yml")) else PROFILE_DIR / f"{name_or_path}.yaml"
    try:
        return Profile.model_validate(_document(path, name_or_path))
    except (yaml.YAMLError, ValidationError) as error:
        raise ValueError(f"{path}: {error}") from error


def load_model(text: str) -> Profile:
    """Return what `--phones` names: a profile, or `replay:FILE`, a recording. Raises ValueError."""
    kind, _, path = text.partition(":")
    if kind != "replay":
        return load_profile(text)
    recording = load_recording(Path(path))
    profile = load_profile(recording.profile)
    power = profile.power
    if recording.idle_w is not None:
        power = Power(idle_w=recording.idle_w, load_w=max(power.load_w, 2 * recording.idle_w))
    return profile.model_copy(update={"recording": recording, "power": power})


def _document(path: Path, name: str) -> Any:
    """The file's content. One with `extends: NAME` has of that profile what it does not say itself."""
    if not path.is_file():
        raise ValueError(f"no virtual phone profile {name!r}; there are: {', '.join(profile_names())}")
    document = yaml.safe_load(path.read_text())
    if not isinstance(document, dict) or "extends" not in document:
        return document
    base = str(document.pop("extends"))
    whole = _document(PROFILE_DIR / f"{base}.yaml", base)
    return {key: _merged(whole.get(key), document.get(key, whole.get(key))) for key in {**whole, **document}}


def _merged(base: Any, own: Any) -> Any:
    return {**base, **own} if isinstance(base, dict) and isinstance(own, dict) else own
