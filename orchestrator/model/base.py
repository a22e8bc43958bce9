"""Base class of every model of the farm."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import to_string_ser_schema

T = TypeVar("T")
STRICT = ConfigDict(frozen=True, extra="forbid")
"""The configuration of models, also for dataclasses that stand in a model."""


class Model(BaseModel):
    """Frozen data that may cross a process; unknown fields are errors.

    The docstrings of its fields are their descriptions in a JSON Schema, and are read for that alone: pydantic's
    `use_attribute_docstrings` parses the source of every model at each start of every process.
    """

    model_config = STRICT

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(core)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for parent in reversed(cls.__mro__):
            if issubclass(parent, Model):
                for name, text in _docstrings(parent).items():
                    properties.get(name, {}).setdefault("description", text)
        return found


def rule(check: Callable[[Any], None]) -> Any:
    """Let a method check a whole model: it raises ValueError where fields do not go together."""

    def checked(model: T) -> T:
        check(model)
        return model

    return model_validator(mode="after")(checked)


class Word(StrEnum):
    """A word of a fixed set, written as the string that it is: pydantic asks each for its value, which takes an eighth
    of the time that a record takes."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "serialization": to_string_ser_schema()}


class Remedied(Word):
    """A word for a fault, declared with its remedy: `GAP = "gap", "record again"`."""

    remedy: str

    def __new__(cls, word: str, remedy: str = "") -> Self:
        made = str.__new__(cls, word)
        made._value_, made.remedy = word, remedy
        return made


def like(kind: Callable[..., T], of: object, **more: Any) -> T:
    """Make a thing of the fields that another has under the same names. `more`: those that it has not, or differ."""
    return kind(**{name: getattr(of, name) for name in _fields(kind) if name not in more and hasattr(of, name)}, **more)


@lru_cache
def _fields(kind: Callable[..., object]) -> tuple[str, ...]:
    return tuple(inspect.signature(kind).parameters)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Field -> the docstring that follows it in the class."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(said.value.value)
        for field, said in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant) and isinstance(said.value.value, str)
    }  # fmt: skip


def content_hash(value: BaseModel | dict[str, Any]) -> str:
    """Hash a value's canonical JSON: the identity of jobs, cells and plans (SHA-256, 16 hex digits)."""
    data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return hash_of_text(canonical_json(data))


def canonical_json(data: dict[str, Any] | tuple[str, ...]) -> bytes:
    """The one text of a value that is hashed."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_of_text(*parts: bytes) -> str:
    """The identity of what has this canonical text, given in parts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]
