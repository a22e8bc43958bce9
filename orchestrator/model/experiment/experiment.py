"""One experiment file, checked as a whole."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from orchestrator.model.axes import ENGINE, MATRIX_AXES
from orchestrator.model.base import Model, rule
from orchestrator.model.device import Api, Precision

from . import several
from .conditions import Conditions
from .engine_settings import EngineSettings
from .language_model import DEFAULTS, with_text
from .matrix import Matrix
from .measure import Measure
from .placement_rules import PlacementRules
from .published import Published
from .sampling import Sampling
from .sides import DRIVER_FILES, Sides
from .strategy import LimitSearch, StrategyChoice
from .workload import Workload


def _plain_name(value: str) -> str:
    if not value or len(value) > 60 or not all(c.isalnum() or c in "_-." for c in value):
        raise ValueError("allowed: 1 to 60 letters, digits, '_', '-' and '.'")
    return value


Name = Annotated[str, AfterValidator(_plain_name)]


def why_taken(name: str) -> str:
    """Return why commands would take a new name for something else; empty: they do not. Old names stay readable."""
    if name == "latest":
        return "commands call the newest of all so"
    return "a name begins with a letter, a digit or `_`" if name[:1] in ("-", ".") else ""


class DeviceChoice(Model):
    """The devices that take part."""

    where: str = "true"
    """Expression over device facts, e.g. `gpu_vendor == "adreno" and memory >= 3 GiB and "vulkan" in apis`."""
    count: Literal["all", "any"] | Annotated[int, Field(ge=1)] = "all"
    """`all` that match; a number of them; or `any` one, whichever is free first."""


class Experiment(Model):
    """One experiment file, validated."""

    schema_version: Literal[1] = 1
    name: Name
    description: str = ""
    workload: Workload
    """The model or program that runs. A list of models (`network`, `onnx`): every configuration runs each of them."""
    workloads: tuple[Workload, ...] = Field(default=(), exclude_if=lambda value: not value)
    """Filled in where `workload` is a list: those behind the first."""
    devices: DeviceChoice = DeviceChoice()
    matrix: Matrix = Matrix()
    sampling: Sampling = Sampling()
    conditions: Conditions = Conditions()
    measure: Measure = Measure()
    engine: EngineSettings | None = Field(default=None, exclude_if=lambda value: value is None)
    """Settings of the engine that runs it, where it has some."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Higher goes first; equal priorities share the devices fairly."""
    placement: PlacementRules = PlacementRules()
    sides: Sides | None = Field(default=None, exclude_if=lambda value: value is None)
    """Two sides of a comparison: each configuration is run on both, next to each other in each round."""
    strategy: StrategyChoice | None = Field(default=None, exclude_if=lambda value: value is None)
    """The jobs that follow by results, where that is more than the matrix and its blocks."""
    published: Published | None = None
    """Figures of a study, shown beside the results and never counted among them."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = super().__get_pydantic_json_schema__(core, handler)
        several.in_schema(handler.resolve_ref_schema(found))
        return found

    @model_validator(mode="before")
    @classmethod
    def _names_its_study(cls, data: object) -> object:
        """Experiments of older ledgers have figures of their own, which nobody checked: they are told no more."""
        match data:
            case {"published": {"source": _}, **rest}:
                return rest
        return data

    @model_validator(mode="before")
    @classmethod
    def _usual_sampling(cls, data: object) -> object:
        """The defaults of `sampling`: one probe a value where limits are searched; each example of a set once, nothing
        before it; of one training every epoch (the agent knows better), without warm-up."""
        if not isinstance(data, dict) or not isinstance(sampling := data.get("sampling") or {}, dict):
            return data
        usual: dict[str, object] = {}
        match data:
            case {"strategy": {"limit_search": dict()}}:
                usual = {"blocks": 1}
        match data:
            case {"workload": {"training": {"epochs": int(epochs)}}}:
                usual |= {"blocks": 1, "warmup": 0, "samples": min(max(epochs, 1), 100_000)}
            case {"workload": {"dataset": dict()}}:
                usual |= {"warmup": 0, "samples": 1}
        return {**data, "sampling": {**usual, **sampling}} if usual else data

    @model_validator(mode="before")
    @classmethod
    def _of_a_text(cls, data: object) -> object:
        """The numbers of tokens are axes."""
        return with_text(data)

    @model_validator(mode="before")
    @classmethod
    def _of_a_program(cls, data: object) -> object:
        """A command runs by the engine for commands; one that says itself how often it runs warms up itself."""
        match data:
            case {"workload": {"command": str(command)}, **rest}:
                matrix, sampling = rest.get("matrix") or {}, rest.get("sampling") or {}
                if isinstance(matrix, dict):
                    data = {**data, "matrix": {"backend": "cpu", "engine": "command", **matrix}}  # type: ignore[dict-item]
                if isinstance(sampling, dict) and "{samples}" in command and "{warmup}" not in command:
                    data = {**data, "sampling": {"warmup": 0, **sampling}}  # type: ignore[dict-item]
        return data

    @model_validator(mode="before")
    @classmethod
    def _of_a_list(cls, data: object) -> object:
        return several.listed_apart(data)

    @rule
    def _of_several(self) -> None:
        alone = {
            "matrix.network": self.matrix.network is not None,
            "strategy": self.strategy is not None,
            "sides: onnx, network": any(side.onnx or "network" in side.axes for _, side in self.sides or ()),
        }
        if why := several.why_not(self.every_workload, alone):
            raise ValueError(f"`workload`: {why}")

    @rule
    def _as_the_command_says(self) -> None:
        named, printed = self.workload.placeholders, self.engine.result if self.engine else None
        if self.workload.command is None:
            if printed:
                raise ValueError("`engine.result` tells how to read a `workload.command`, and there is none")
            return
        counts, sampling = "samples" in named, self.sampling
        wrong = {
            "`{samples}` in the command needs `engine.result`, by which they are read": counts and printed is None,
            "leave out `sampling.load`: by `{samples}` the command ends itself": counts and sampling.load > 0,
            "put `{warmup}` into the command, or leave out `sampling.warmup`: by `{samples}` it runs once": (
                counts and (sampling.warmup > 0 or sampling.warmup_stable is not None) and "warmup" not in named
            ),
            "`{warmup}` in the command needs `{samples}` too": "warmup" in named and not counts,
            "leave out `sampling.frames`: a command's samples are its own": sampling.frames > 1,
            "`measure.quantities: layers` are of our own engine": "layers" in self.measure.quantities,
        }
        for axis in ("backend", "precision"):
            wrong[f"the command has no `{{{axis}}}`: give one value as `matrix.{axis}`"] = (
                len(getattr(self.matrix, axis)) > 1 and axis not in named
            )
        for why in (why for why, is_wrong in wrong.items() if is_wrong):
            raise ValueError(why)
        for name in sorted(named & MATRIX_AXES.keys() - self.matrix.options.keys()):
            raise ValueError(f"the command has `{{{name}}}`: give its values as `matrix.{name}`")

    @rule
    def _by_answers(self) -> None:
        matrix = self.matrix
        if self.workload.language_model is None:
            for name in (name for name in DEFAULTS if getattr(matrix, name) is not None):
                raise ValueError(f"matrix.{name}: a text is of a `workload.language_model`, and there is none")
            return
        alone = {f"matrix.{name}": getattr(matrix, name) for name in ("network", "on_cpu", "pipeline", "objects")}
        unfit = {name: values is not None for name, values in alone.items()} | {
            "sampling.frames": self.sampling.frames > 1,
            "measure.quantities: layers": "layers" in self.measure.quantities,
            "strategy": self.strategy is not None,
            "sides: onnx, network": any(side.onnx or "network" in side.axes for _, side in self.sides or ()),
        }
        for field in (name for name, is_asked in unfit.items() if is_asked):
            raise ValueError(
                f"leave out `{field}`: with `workload.language_model` a sample is a prompt with its answer"
            )

    @rule
    def _by_epochs(self) -> None:
        training, sampling = self.workload.training, self.sampling
        updates = self.matrix.updates or ("device",)
        if training is None:
            if "host" in updates:
                raise ValueError("matrix.updates: only an experiment with `workload.training` has weights to update")
            return
        unfit = {
            "sampling.mode": sampling.mode != "steady",
            "sampling.frames": sampling.frames > 1,
            "sampling.warmup": sampling.warmup > 0 or sampling.warmup_stable is not None,
            "sampling.samples": sampling.samples != training.epochs,
            "sampling.load": sampling.load > 0,
            "conditions.stop_temp": self.conditions.stop_temp is not None,
            "sides": self.sides is not None,
            "measure.quantities: layers": "layers" in self.measure.quantities,
        }
        for field in (name for name, is_asked in unfit.items() if is_asked):
            raise ValueError(f"leave out `{field}`: with `workload.training` a sample is an epoch, and each counts")
        if training.steps in ("joined", "per_node") and Api.CPU in self.matrix.backend:
            raise ValueError(
                f"workload.training.steps: {training.steps} is of opencl and vulkan: take `auto`, or cpu out of "
                "`matrix.backend`"
            )
        if training.steps == "joined" and "host" in updates:
            raise ValueError(
                "workload.training.steps: joined steps update weights on the device: take `auto`, or host out of "
                "`matrix.updates`"
            )
        for batch in self.matrix.batch or ():
            if batch % 4:
                raise ValueError(f"matrix.batch {batch}: a training takes samples by multiples of four")
        for precision in self.matrix.precision:
            if precision not in (Precision.FP32, Precision.RELAXED):
                raise ValueError(f"matrix.precision {precision}: a training computes in fp32 or relaxed")

    @rule
    def _by_shards(self) -> None:
        dataset, sampling = self.workload.dataset, self.sampling
        if dataset is None:
            return
        unfit = {
            "sampling.mode": sampling.mode != "steady",
            "sampling.frames": sampling.frames > 1,
            "sampling.target_interval": sampling.target_interval is not None,
            "sampling.blocks": dataset.size is None and "blocks" in sampling.model_fields_set,
        }
        for field in (name for name, is_asked in unfit.items() if is_asked):
            raise ValueError(f"leave out `{field}`: with `workload.dataset` a block is a shard of the set, as a stream")
        for batch in self.matrix.batch or ():
            if dataset.shard % batch:
                raise ValueError(f"workload.dataset.shard {dataset.shard} is no multiple of the batch {batch}")

    @rule
    def _of_whole_inferences(self) -> None:
        frames = self.sampling.frames
        for batch in self.matrix.batch or () if frames > 1 else ():
            if frames % batch:
                raise ValueError(f"sampling.frames {frames} is no multiple of the batch {batch}")
        if frames == 1 and self.workload.dataset is None and set(self.matrix.pipeline or ()) - {"none"}:
            raise ValueError("`matrix.pipeline` needs a stream: give `sampling.frames`, e.g. `frames: 100`")
        if self.matrix.affinity is not None and self.conditions.affinity != "any":
            raise ValueError("give the cores once: as `matrix.affinity` or as `conditions.affinity`")

    @rule
    def _of_chosen_layers(self) -> None:
        if self.matrix.choices is not None and self.workload.choices is None:
            raise ValueError("`matrix.choices` needs a file: give `workload.choices`, which `farm best -o` writes")

    @rule
    def _of_two_sides(self) -> None:
        """A configuration of one side has its like on the other."""
        if self.sides is None:
            return
        for name, side in self.sides:
            for axis in side.axes:
                listed = self.matrix.listed(axis)
                if listed is not None and len(listed) > 1:
                    raise ValueError(f"sides.{name} sets `{axis}`, and `matrix.{axis}` has several values: give one")
            if side.onnx is not None and (self.matrix.network or "network" in side.axes):
                raise ValueError(f"sides.{name}: give either `onnx` or networks by name")
            if "network" in side.axes and self.workload.onnx is not None:
                raise ValueError(f"sides.{name}: `workload.onnx` names a file: give `onnx` instead of a network's name")
            backends = {str(side.axes.get("backend", api)) for api in self.matrix.backend}
            if side.driver is not None and backends != {DRIVER_FILES[PurePath(side.driver).suffix]}:
                told = ", ".join(sorted(backends))
                raise ValueError(f"sides.{name}: {side.driver} is no driver of all backends that it runs on ({told})")
        if self.workload.dataset is not None:
            raise ValueError("`sides` and `workload.dataset` do not go together: sweep an axis, and `farm agreement`")

    @rule
    def _of_one_strategy(self) -> None:
        others = {
            "sampling.target_interval": self.sampling.target_interval is not None,
            "sides": self.sides is not None,
            "workload.dataset": self.workload.dataset is not None,
        }
        for field in (name for name, is_there in others.items() if is_there and self.strategy is not None):
            raise ValueError(f"`strategy` and `{field}` do not go together: leave one of them out")
        if self.strategy is not None and self.strategy.limit_search is not None:
            self._can_search(self.strategy.limit_search)

    def _can_search(self, search: LimitSearch) -> None:
        if self.sampling.blocks != 1:
            raise ValueError("`strategy.limit_search`: a probe is one block: leave out `sampling.blocks`")
        begin = search.begin(self.workload, self.matrix)
        if begin > search.most:
            raise ValueError(f"`strategy.limit_search` begins at {begin}, above `most`, which is {search.most}")

    @rule
    def _of_engines_with_files(self) -> None:
        models = self.engine.models if self.engine else {}
        if models and (self.workload.kind not in ("onnx", "network") or self.matrix.network or self.matrix.batch):
            raise ValueError(
                "`engine.models` are files of models: give those as `workload.onnx` or `workload.network`, without "
                "`matrix.network` and `matrix.batch`"
            )
        engines = {*(self.matrix.engine or ()), *(str(side.axes.get(ENGINE.name)) for _, side in self.sides or ())}
        if why := several.why_no_models(models, engines, self.every_workload):
            raise ValueError(why)

    @rule
    def _last_of_the_matrix(self) -> None:
        axes = self.matrix.model_dump(exclude={"of_engines"}).keys() | self.matrix.of_engines.keys()
        for name, values in self.placement.last.items():
            known = [getattr(each, "value", each) for each in (self.matrix.listed(name) or () if name in axes else ())]
            for value in values:
                if value not in known:
                    told = f"it lists {', '.join(map(str, known))}" if known else "it does not list the axis"
                    raise ValueError(f"`placement.last.{name}: {value}` is none of the matrix: {told}")

    @rule
    def _of_known_devices(self) -> None:
        """Refuse what is decided by device where any device may run a block."""
        asked = {
            "sampling.target_interval": self.sampling.target_interval is not None,
            "sampling.canary": self.sampling.canary > 0,
            "strategy": self.strategy is not None,
        }
        for field in (name for name, is_asked in asked.items() if is_asked and self.devices.count == "any"):
            raise ValueError(
                f"`{field}` goes by device, and with `devices.count: any` a block may run on any: "
                f"give `devices.count` as `all` or a number, or leave out `{field}`"
            )

    @property
    def every_workload(self) -> tuple[Workload, ...]:
        """Return its workloads: one, or those of the list."""
        return (self.workload, *self.workloads)

    @property
    def searches_limits(self) -> bool:
        """Return whether a job that is refused or killed is what it looks for."""
        return self.strategy is not None and self.strategy.limit_search is not None

    @property
    def may_grow(self) -> bool:
        """Return whether jobs may follow that depend on results."""
        sampling = self.sampling
        if self.strategy is not None:
            return True
        return sampling.target_interval is not None and sampling.max_blocks > sampling.blocks
