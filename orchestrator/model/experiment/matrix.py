"""The matrix: its configurations are each choice of one value per axis. Its optional fields are the declared axes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kernels.options.axis import Axis
from orchestrator.model.axes import ENGINE, MATRIX_AXES
from orchestrator.model.base import Model
from orchestrator.model.device import OWN_AXIS, Api, Precision
from orchestrator.model.quantity import Bytes

_Own = StrictBool | StrictInt | StrictStr
_SEVERAL = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "boolean"}]}
"""A value that is one word, several, or on and off."""


class _Matrix(Model):
    """The axes: each choice of one value per axis is a configuration. Axes that are not listed keep their default."""

    network: tuple[str, ...] | None = None
    """Built-in networks to sweep; replaces `workload.network`."""
    backend: tuple[Api, ...] = (Api.OPENCL,)
    precision: tuple[Precision, ...] = (Precision.FP32,)
    of_engines: dict[str, tuple[_Own, ...]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Axes that an engine's own file declares, by `ENGINE.AXIS`; a file lists them among the others."""

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, data: object) -> object:
        """Take the axes of engines from among the others."""
        if not isinstance(data, dict):
            return data
        own = {name: data[name] for name in data if isinstance(name, str) and re.fullmatch(OWN_AXIS, name)}
        if not own:
            return data
        rest = {name: value for name, value in data.items() if name not in own}
        return {**rest, "of_engines": {**rest.get("of_engines", {}), **own}}

    @field_validator("of_engines", mode="before")
    @classmethod
    def _own_listed(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        for name in value:
            if not re.fullmatch(OWN_AXIS, str(name)):
                raise ValueError(f"{name}: an engine's own axis is named `ENGINE.AXIS`")
        return {name: cls._several(values) for name, values in value.items()}

    @field_validator("*", mode="before")
    @classmethod
    def _listed(cls, value: object, info: ValidationInfo) -> object:
        """A single value is a list of one; an empty or repeating list is an error."""
        if value is None or info.field_name == "of_engines":
            return value
        axis = MATRIX_AXES.get(info.field_name or "")
        return cls._several(value, axis.parse if axis else None)

    @staticmethod
    def _several(value: object, parse: Callable[[Any], Any] | None = None) -> list[Any]:
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not values:
            raise ValueError("an axis needs at least one value")
        if parse:
            values = [parse(each) for each in values]
        if len({str(each) for each in values}) != len(values):
            raise ValueError("a value is listed twice")
        return values

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of what `_listed` reads as an axis: a single value, or a list that is not empty."""
        found = super().__get_pydantic_json_schema__(core, handler)
        schema = handler.resolve_ref_schema(found)
        own = schema["properties"].pop("of_engines")["additionalProperties"]
        schema["patternProperties"] = {f"^{OWN_AXIS}$": {"anyOf": [own["items"], {**own, "minItems": 1}]}}
        for values in schema["properties"].values():
            kinds = values.pop("anyOf", None) or [{name: values.pop(name) for name in ("type", "items")}]
            listed = {**kinds[0], "minItems": 1}
            values["anyOf"] = [listed["items"], listed, *kinds[1:]]
            if "anyOf" in listed["items"]:  # a value that may be a list itself
                values["not"] = {"const": []}
        return found

    @property
    def options(self) -> dict[str, tuple[Any, ...]]:
        """The optional axes that are listed, with their values."""
        listed = {name: getattr(self, name) for name in MATRIX_AXES}
        return {name: values for name, values in listed.items() if values is not None} | self.of_engines

    def listed(self, name: str) -> tuple[Any, ...] | None:
        """Return the values of any axis; None where it is not listed."""
        found: tuple[Any, ...] | None = self.of_engines.get(name) if "." in name else getattr(self, name)
        return found


def _type_of(axis: Axis) -> Any:
    """The type of one value, as pydantic takes it."""
    if axis.words:
        return Literal[axis.words]
    if axis.unit == "B":
        return Bytes
    if axis.bounds:
        return Annotated[axis.type, Field(ge=axis.bounds[0], le=axis.bounds[1])]
    found: Any = Annotated[axis.type, AfterValidator(_refused_by(axis))] if axis.refuse else axis.type
    return Annotated[found, WithJsonSchema(_SEVERAL)] if axis.parse else found


def _refused_by(axis: Axis) -> Any:
    def check(value: Any) -> Any:
        if axis.refuse and (why := axis.refuse(value)):
            raise ValueError(why)
        return value

    return check


def _field(axis: Axis) -> Any:
    description = f"{axis.help}; not given: {axis.otherwise}."
    values: Any = tuple.__class_getitem__((_type_of(axis), ...))
    unwritten = _is_absent if axis is ENGINE else None  # experiments of before there were others keep their hash
    return (values | None, Field(default=None, description=description, exclude_if=unwritten))


def _is_absent(value: object) -> bool:
    return value is None


if TYPE_CHECKING:

    class Matrix(_Matrix):
        """Every declared axis is an attribute: its values, or None where it is not listed."""

        def __getattr__(self, name: str) -> Any: ...

else:
    Matrix = create_model(
        "Matrix",
        __base__=_Matrix,
        __doc__=_Matrix.__doc__,
        __module__=__name__,
        **{name: _field(axis) for name, axis in MATRIX_AXES.items()},
    )
