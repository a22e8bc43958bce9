"""A device: facts (what it is) apart from state (how it is now)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from .base import Model, Word
from .enrolment import Enrolment


class Api(Word):
    """A compute interface of a device."""

    OPENCL = "opencl"
    VULKAN = "vulkan"
    CPU = "cpu"


class Precision(Word):
    """Arithmetic of a plan: IEEE single; single with joined products and sums (relaxed); single as
    fast as the driver likes (imprecise); half storage with single arithmetic; half
    storage with products and short sums in half; single around products of 8 bits (int8)."""

    FP32 = "fp32"
    RELAXED = "relaxed"
    IMPRECISE = "imprecise"
    FP16 = "fp16"
    FP16_ARITHMETIC = "fp16_arithmetic"
    INT8 = "int8"


class Source(Word):
    """The source of a result; shown wherever the result is shown."""

    PHONE = "phone"
    WORKSTATION = "workstation"
    VIRTUAL = "virtual"
    REPLAY = "replay"
    IMPORT = "import"


class ApiFacts(Model):
    """The offer of one compute API of a device, as the agent's probe found it."""

    api: Api
    version: str
    """Version string of the API, e.g. `OpenCL 3.0` or `1.3.204`."""
    device_name: str
    """Name that the driver gives to the device, e.g. `pthread-...` (PoCL) or `llvmpipe (LLVM 15)`."""
    vendor: str = ""
    driver: str = ""
    """Driver name and version."""
    library: str = ""
    """Path or soname of the library that was loaded."""
    precisions: tuple[Precision, ...] = (Precision.FP32,)
    global_bytes: int = Field(default=0, ge=0)
    max_buffer_bytes: int = Field(default=0, ge=0)
    """Largest single allocation (0: unknown)."""
    local_bytes: int = Field(default=0, ge=0)
    """Local (shared) memory of one work-group, bytes."""
    max_work_group: int = Field(default=1, ge=1)
    max_work_item_sizes: tuple[int, ...] = ()
    compute_units: int = Field(default=1, ge=0)
    clock_mhz: int = 0
    """The clock as the driver reports it; Adreno often says 1: never derive a peak from it."""
    offset_alignment: int = Field(default=256, ge=1)
    """Alignment of sub-buffer offsets, bytes."""
    subgroup_size: int = 0
    dot_product: Literal["", "khr", "ptx", "vnni", "sdot"] = ""
    """The way a kernel multiplies four whole numbers of 8 bits and adds them up in one instruction: by the API's
    extension (khr: cl_khr_integer_dot_product, shaderIntegerDotProduct), NVIDIA's (ptx), or the processor's own
    instructions (vnni, sdot); empty: only one by one."""
    matrix_units: tuple[Annotated[str, Field(pattern=r"^[0-9]{1,6}x[0-9]{1,6}x[0-9]{1,6}$")], ...] = ()
    """Products of matrices of halves, added up in single, that a subgroup computes at once, each as `rows x columns x
    depth`, e.g. `16x16x16`: of Vulkan's VK_KHR_cooperative_matrix, or NVIDIA's own from compute capability 8.0 on."""
    int64: bool = True
    """Kernels may have whole numbers of 64 bits (shaderInt64; OpenCL C's `long`)."""
    unified_memory: bool = False
    max_image_width: int = 0
    """The largest width of 2-D images, in texels; 0: the device has none."""
    max_image_height: int = 0


class DeviceFacts(Model):
    """The facts of a device. They change only with an update, a repair or another phone under the same serial."""

    serial: str
    """The farm's name for it: a phone's own serial number (`ro.serialno`), however it is connected."""
    host: str
    kind: Literal["phone", "workstation", "unknown"]
    source: Source
    address: str = ""
    """The name that its host's adb server has for it now, e.g. `127.0.0.1:5555`; empty on a workstation."""
    model: str = ""
    manufacturer: str = ""
    soc: str = ""
    gpu: str = ""
    gpu_vendor: str = ""
    """Lower case: adreno, mali, powervr, intel, amd, nvidia, cpu (software) ..."""
    abi: str = ""
    sdk: int = 0
    """Android API level; 0 on a workstation."""
    fingerprint: str = ""
    """ro.build.fingerprint; kernel and distribution on a workstation."""
    memory_bytes: int = 0
    cores: int = 0
    boot_id: str = ""
    profile: str = ""
    """Name of the virtual phone's profile; empty for real devices."""
    apis: tuple[ApiFacts, ...] = ()
    apis_missing: tuple[str, ...] = ()
    """The reasons why APIs cannot be used, in the words of the phone's linker or driver; one text for each API."""
    tools_missing: tuple[str, ...] = ()
    """Commands that Android has and this phone has not, e.g. `settings`: conditions that need them cannot be met."""

    def api(self, api: Api) -> ApiFacts | None:
        """Facts of one API, or None where the device lacks it."""
        return next((facts for facts in self.apis if facts.api == api), None)


class Health(Word):
    """The health of a device: whether it can be given work."""

    READY = "ready"
    OFFLINE = "offline"
    UNAUTHORIZED = "unauthorized"
    PROBING = "probing"
    SICK = "sick"
    QUARANTINED = "quarantined"
    DRAINING = "draining"
    """Its host finishes what it runs, and gets nothing new: a person said so."""
    HELD = "held"
    """A person has it for themselves: `farm hold`."""
    BUSY_ELSEWHERE = "busy_elsewhere"
    """A host of another farm, or one that this farm knows nothing of, has it: its claim lies on the phone."""
    UNFIT = "unfit"
    """Its host's worker is of a version that this farm does not work with."""


class Reading(Model):
    """The readings of a device's battery gauge, clocks and sensors at one moment; None is what it does not tell."""

    at: float
    """Unix time."""
    current_raw: int | None = None
    """Battery current as the node prints it; unit and sign are the gauge's (`orchestrator.energy.battery_draw_a`)."""
    voltage_v: float | None = None
    status: str = ""
    """The status of the battery, as the kernel prints it: `Charging`, `Discharging` ..."""
    battery_cycles: int | None = None
    """Full charges that the battery has had, by its own count."""
    battery_health: str = Field(default="", exclude_if=lambda value: not value)
    """The kernel's word for it: `Good`, `Overheat`, `Dead` ..."""
    cpu_hz: int | None = None
    """Clock of the fastest core."""
    gpu_hz: int | None = None
    cpu_temp_c: float | None = None
    """The temperature of the warmest sensor, as for the GPU."""
    gpu_temp_c: float | None = None


class DeviceState(Model):
    """The state of a device, as its host last announced it."""

    health: Health
    reason: str = ""
    """The reason why it is not ready, and what to do."""
    battery_percent: float | None = None
    battery_temp_c: float | None = None
    battery_slope_c_per_min: float | None = None
    """The slope over the last minutes, where the phone was watched for as long."""
    skin_temp_c: float | None = None
    charging: bool | None = None
    thermal_status: int | None = None
    free_storage_bytes: int | None = None
    left_changed: tuple[str, ...] = ()
    """Things that a crashed session changed on it (settings, `supply`), and nobody has put back yet."""
    ready_at: float | None = None
    """Unix time when a hot or flat device is predicted to be ready; None: now or unknown."""
    reading: Reading | None = None
    """The reading of an idle phone, every few seconds; while a session has it, its `Progress` has newer ones."""
    seen_at: float = 0.0
    """Unix time of the announcement."""
    clock_off_s: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Its clock less its host's, to ten seconds; None where that is less than a minute, or not known."""
    adb_losses: int = Field(default=0, exclude_if=lambda value: not value)
    """The times that adb lost it within the last hour."""


ENGINE_NAME = r"[a-z][a-z0-9_]{0,31}(?:\.[a-z0-9_]{1,15})?"
AXIS_NAME = r"[a-z][a-z0-9_]{0,31}"
OWN_AXIS = rf"{ENGINE_NAME}\.{AXIS_NAME}"
"""The name of an axis that an engine's own file declares: `onnxruntime.graph_optimization`; the last dot parts it."""


class EngineAxis(Model):
    """An axis of one engine, as its own file declares it. In an experiment its name follows the engine's and a dot."""

    name: str = Field(pattern=f"^{AXIS_NAME}$")
    help: str
    """One sentence without its full stop."""
    default: int | str | bool
    words: tuple[str, ...] = ()
    """The values that are allowed; empty: any of the default's type."""
    bounds: tuple[int, int] | None = None

    def why_not(self, value: object) -> str:
        """Return why a value is none of the axis; empty: it is one."""
        if self.words and value not in self.words:
            return f"it has {', '.join(self.words)}"
        if type(value) is not type(self.default):
            return f"it takes {_KINDS[type(self.default)]}"
        low, high = self.bounds or (0, 0)
        return f"it has {low} to {high}" if self.bounds and not low <= int(str(value)) <= high else ""


_KINDS: dict[type, str] = {bool: "true or false", int: "whole numbers", str: "words"}


class EngineFacts(Model):
    """The facts of an engine, as its host announces them, that decide whether a cell can run on a device."""

    name: str = Field(pattern=f"^{ENGINE_NAME}$")
    takes: tuple[str, ...] = Field(min_length=1)
    """The kinds of workload that it can run (`Workload.kind`)."""
    apis: tuple[Api, ...] = tuple(Api)
    precisions: tuple[Precision, ...] = tuple(Precision)
    axes: tuple[EngineAxis, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Axes of its own."""
    missing: str = ""
    """The reason why it cannot run on the device as things are, with its remedy; empty: it can."""
    brought: bool = Field(default=False, exclude_if=lambda value: not value)
    """Its program is in a folder that a person adds to the farm (`farm engines add`)."""

    def why_no_value(self, options: Mapping[str, int | str | bool]) -> str:
        """Return why a value of one of its own axes, among a cell's options, is none; empty: all are."""
        known = {f"{self.name}.{each.name}": each for each in self.axes}
        for name in sorted(name for name in options if name.rpartition(".")[0] == self.name):
            if name not in known:
                return f"engine {self.name} has no axis `{name}` (it has {', '.join(known) or 'none'})"
            if why := known[name].why_not(options[name]):
                return f"{name}: {options[name]!r} is no value of the axis: {why}; {known[name].help}"
        return ""

    def why_not(self, backend: Api, precision: Precision) -> str:
        """Return why it cannot run there so; empty where it can."""
        if self.missing:
            return f"engine {self.name}: {self.missing}"
        if backend not in self.apis:
            return f"engine {self.name} has no {backend} (it has {', '.join(self.apis)})"
        if precision not in self.precisions:
            return f"engine {self.name} has no {precision} (it has {', '.join(self.precisions)})"
        return ""


OURS = EngineFacts(name="pocketfarm", takes=("network", "onnx", "language_model"))
"""The farm's own engine: the compiler's plans, run by the agent."""


class DeviceNote(Model):
    """The words of people on a device."""

    labels: tuple[str, ...] = ()
    """`KEY=VALUE`, or `PROJECT/KEY=VALUE` of a project's, each key once, by key."""
    note: str = ""
    owner: str = ""
    """The person or group whose it is."""

    def seen_by(self, projects: frozenset[str] | None) -> DeviceNote:
        """Return it without the labels of other projects than these; None: of none."""
        if projects is None or all(project_of(each) in ("", *projects) for each in self.labels):
            return self
        labels = tuple(each for each in self.labels if project_of(each) in ("", *projects))
        return self.model_copy(update={"labels": labels})


def project_of(label: str) -> str:
    """Return the project whose label it is; empty: the farm's."""
    return label.partition("=")[0].rpartition("/")[0]


class Device(Model):
    """One device of the farm as the inventory knows it."""

    facts: DeviceFacts
    state: DeviceState
    enrolment: Enrolment | None = None
    """The device profile; None until the device was enrolled."""
    engines: tuple[EngineFacts, ...] = Field(default=(OURS,), exclude_if=lambda value: value == (OURS,))
    """The engines that its host has for it."""
    noted: DeviceNote | None = Field(default=None, exclude_if=lambda value: value is None)
    """The words of people, from the ledger; whatever a host announces here does not count."""
    unknown: frozenset[str] = Field(default=frozenset(), exclude_if=lambda value: not value)
    """Words of experiments that the worker of its host is too old for; the farm says so, and no host."""

    @property
    def serial(self) -> str:
        return self.facts.serial
