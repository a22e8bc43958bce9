"""The doubts about a record, each with its remedy, and the reasons why a block does not count."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from .base import Model, Remedied, Word
from .device import ENGINE_NAME


class DoubtCode(Remedied):
    """A possible fault of a record, with its remedy."""

    VIRTUAL_DEVICE = "virtual_device", "run on a real phone before you publish"
    SHARED_HOST = "shared_host", "leave the host alone while it measures, or use a device of its own"
    FEW_SAMPLES = "few_samples", "raise sampling.samples"
    NOISY_SAMPLES = "noisy_samples", "raise sampling.warmup, close background work, let the device cool"
    MEAN_OF_RUNS = (
        "mean_of_runs",
        "read medians: what single inferences take, p90 and p99, needs a shorter sampling.load",
    )
    DRIFT = "drift", "raise sampling.warmup or let the device cool between blocks"
    CHARGING = "charging", "cut the supply during the block (a switchable hub, or Wi-Fi adb)"
    HOT = "hot", "lower conditions.battery_temp_max or give the phone air"
    FREQUENCY_CHANGED = "frequency_changed", "lock the clocks, or compare only blocks under the same clocks"
    NON_FINITE_OUTPUT = "non_finite_output", "check the model and the precision: the output holds NaN or infinity"
    DIVERGED = "diverged", "lower training.learning_rate or momentum: the loss is no finite number, the model useless"
    NO_POWER_GAUGE = "no_power_gauge", "the device has no readable gauge: use an external meter"
    RESUMED = "resumed", "the cable dropped during the run; the journal is complete"
    AGENT_WARNING = "agent_warning", "read its words: the details of this warning in `farm results EXPERIMENT --json`"
    RELATIVE_ENERGY = "relative_energy", "compare only on this phone, or calibrate its gauge by an external meter"
    GAUGE_ASSUMED = "gauge_assumed", "run `farm enrol SERIAL`: unit and sign of the gauge were assumed"
    CHARGE_MISMATCH = "charge_mismatch", "current and charge counter disagree: enrol the phone again"
    SAMPLER_COST = "sampler_cost", "raise measure.power_period, or let `farm enrol SERIAL` measure it on a quiet device"
    CONDITION_UNPROVEN = "condition_unproven", "the phone does not tell whether the condition holds: check it by hand"
    SHORT_LOAD = "short_load", "raise sampling.load, of tools samples: 30 s and 100 refresh periods of the gauge"
    MODELLED_POWER = "modelled_power", "the power is a virtual phone's model: run on a real phone before you publish"
    NOT_WARM = "not_warm", "raise sampling.warmup: the warm-up ended before the inferences agreed"
    ROUNDING = "rounding", "the network magnifies rounding: a larger input, or trained weights, verify more strictly"
    SAME_PLAN = "same_plan", "take one of the values out: on this device the axis changed nothing that ran"
    ALIKE_BLOCKS = "alike_blocks", "let the device cool between blocks, or use more sessions: the interval is wider"
    IMPLAUSIBLE_POWER = "implausible_power", "correct the unit (`farm enrol SERIAL`, wiring); at rest: cut the supply"
    STUCK_METER = "stuck_meter", "restart the phone or the meter: it says the same whatever is drawn"
    ALIASED_POWER = "aliased_power", "change the batch or the clocks: inferences and refreshes must be out of step"
    METER_CLOCK = "meter_clock", "look for what delays the meter (a hub, a busy host); figures are corrected"
    SESSIONS_DIFFER = "sessions_differ", "run it on other days or after reboots: more blocks of one session add little"
    LAYERS_MISSING = "layers_missing", "read no time of the network, only layers: record its latency_ms, or all layers"
    LAYERS_REFUSED = "layers_refused", "read no time of the network, only other layers; `dot_uneven` takes any number"
    READINGS_LEFT_OUT = "readings_left_out", "see what these values mean: firmware, or a meter, had no reading then"
    VOLTAGE_ASSUMED = "voltage_assumed", "compare energies only on this phone, or use an external meter"
    NO_ENERGY = "no_energy", "mend what it names, and run the block again; times and memory count"
    POWER_STEP = "power_step", "find what else drew power (screen, radio, another program), and run it again"
    SEVERAL_BATTERIES = "several_batteries", "use an external meter: what the other batteries give is not in the figure"
    QUANTITY_MISSING = "quantity_missing", "leave it out of measure.quantities, or run it in a mode that has it"
    PARTLY_COMPARED = "partly_compared", "compare a shorter text of the same model: a whole answer is checked there"
    HOST_CLOCK = "host_clock", "set the clock of its host (NTP); such times are moved to where the attempt was"

    @classmethod
    def _missing_(cls, value: object) -> DoubtCode | None:
        """Records of before call noisy samples `unstable`, which is said of blocks."""
        return cls.NOISY_SAMPLES if value == "unstable" else None


OfEngine = Annotated[str, Field(pattern=rf"^{ENGINE_NAME}\.[a-z0-9_]{{1,64}}$")]
"""A doubt that an engine declares: its name, a full stop, and the engine's word for it."""


UNCHECKED = ("unchecked", "unverified")
"""Words of engines' doubts about outputs that were compared with nothing."""


class Doubt(Model):
    code: DoubtCode | OfEngine
    detail: str = ""
    advice: str = Field(default="", exclude_if=lambda value: not value)
    """The remedy of a doubt that an engine declares."""

    @property
    def is_unchecked(self) -> bool:
        """Return whether it says that the outputs were compared with nothing."""
        return self.code.rpartition(".")[2] in UNCHECKED

    @property
    def remedy(self) -> str:
        return self.code.remedy if isinstance(self.code, DoubtCode) else self.advice


class InvalidCode(Word):
    """A reason that makes a block's figures unusable. The record is kept, its outcome is `invalid`."""

    CHARGING = "charging"
    GAUGE_FROZEN = "gauge_frozen"
    SUSPENDED = "suspended"
    SAMPLING_GAP = "sampling_gap"
    CLOCK_CAP = "clock_cap"
    THROTTLED = "throttled"
    THERMAL_STATUS = "thermal_status"
    BACKGROUND_LOAD = "background_load"
    IDLE_DIFFERS = "idle_differs"
    LEVEL_LEFT = "level_left"
    CLOCK_MAP = "clock_map"
    IMPOSSIBLE_READINGS = "impossible_readings"
    SUPPLIED_AT_REST = "supplied_at_rest"
    WRONG_OUTPUT = "wrong_output"
    TOO_HOT = "too_hot"


class Invalidity(Model):
    """One reason why a block does not count, with what was seen."""

    code: InvalidCode
    detail: str
