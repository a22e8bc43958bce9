"""The matrix: its configurations are each choice of one value per axis. Its optional fields are the declared axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    WithJsonSchema,
    create_model,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kernels.options.axis import Axis
from orchestrator.model.axes import ENGINE, MATRIX_AXES
from orchestrator.model.base import Model
from orchestrator.model.device import Api, Precision
from orchestrator.model.quantity import Bytes

from .language_model import DEFAULTS

_SEVERAL = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "boolean"}]}
"""A value that is one word, several, or on and off."""


class _Matrix(Model):
    """The axes: each choice of one value per axis is a configuration. Axes that are not listed keep their default."""

    network: tuple[str, ...] | None = None
    """Built-in networks to sweep; replaces `workload.network`."""
    backend: tuple[Api, ...] = (Api.OPENCL,)
    precision: tuple[Precision, ...] = (Precision.FP32,)

    @field_validator("*", mode="before")
    @classmethod
    def _listed(cls, value: object, info: ValidationInfo) -> object:
        """A single value is a list of one; an empty or repeating list is an error."""
        if value is None:
            return value
        values = list(value) if isinstance(value, list | tuple) else [value]
        if not values:
            raise ValueError("an axis needs at least one value")
        axis = MATRIX_AXES.get(info.field_name or "")
        if axis and axis.parse:
            values = [axis.parse(each) for each in values]
        if len({str(each) for each in values}) != len(values):
            raise ValueError("a value is listed twice")
        return values

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of what `_listed` reads as an axis: a single value, or a list that is not empty."""
        found = super().__get_pydantic_json_schema__(core, handler)
        for values in handler.resolve_ref_schema(found)["properties"].values():
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
        return {name: values for name, values in listed.items() if values is not None}


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
    unwritten = (
        _is_absent if axis.name in (ENGINE.name, *DEFAULTS) else None
    )  # experiments of before there were others keep their hash
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
